"""The Environment of a built-in domain."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from seal.core.types import Fact, Task, ToolDoc
from seal.env.base import Environment
from seal.env.domain import Domain, DomainSession, bare_doc, facts_of, stated_facts
from seal.env.domain_tasks import domain_tasks


class DomainEnv(Environment):
    """A domain with its generated tasks. `seed` and the scenario counts fix the tasks; the rules are the domain's, and
    `told` is the share of the hidden ones that the bare docs tell."""

    version = "1"
    max_steps_per_turn = 6
    judges_abstention = True

    def __init__(
        self, domain: Domain, seed: int = 0, train: int = 60, dev: int = 15, test: int = 50, told: float = 0.0
    ):
        self.name = domain.name
        self.domain = domain
        self._tasks = domain_tasks(domain, seed, train, dev, test)
        known = stated_facts(domain, told)
        facts = [fact for tool in domain.tools for fact in facts_of(tool)]
        self._facts = [replace(fact, documented=True) if fact in known else fact for fact in facts]
        self._docs = {tool.name: bare_doc(tool, known) for tool in domain.tools}

    def documents(self, task: Task) -> Mapping[str, ToolDoc]:
        return self._docs

    def facts(self, tools: Sequence[str]) -> tuple[Fact, ...]:
        wanted = set(tools)
        return tuple(fact for fact in self._facts if fact.tool in wanted)

    def open(self, task: Task) -> DomainSession:
        return DomainSession(self.domain, task.initial_state)
