"""The Environment of a built-in domain."""

from collections.abc import Mapping, Sequence

from seal.core.types import Fact, Task, ToolDoc
from seal.env.base import Documented
from seal.env.domain import Domain, DomainSession, bare_doc, facts_of
from seal.env.domain_tasks import domain_tasks


class DomainEnv(Documented):
    """A domain with its generated tasks. `seed` and the scenario counts fix the tasks; the rules are the domain's."""

    version = "1"
    max_steps_per_turn = 6
    judges_abstention = True

    def __init__(self, domain: Domain, seed: int = 0, train: int = 60, dev: int = 15, test: int = 50):
        self.name = domain.name
        self.domain = domain
        self._tasks = domain_tasks(domain, seed, train, dev, test)
        self._docs = {tool.name: bare_doc(tool) for tool in domain.tools}

    def tasks(self) -> list[Task]:
        return self._tasks

    def documents(self, task: Task) -> Mapping[str, ToolDoc]:
        return self._docs

    def facts(self, tools: Sequence[str]) -> tuple[Fact, ...]:
        wanted = set(tools)
        return tuple(fact for tool in self.domain.tools if tool.name in wanted for fact in facts_of(tool))

    def open(self, task: Task) -> DomainSession:
        return DomainSession(self.domain, task.initial_state)
