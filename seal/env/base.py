"""What an environment is: tasks, bare docs, facts, and sessions that execute literal calls."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from seal.core.types import Call, Fact, Json, Result, Task, ToolDoc


class Session(Protocol):
    """One isolated instance of the world of one task. Two sessions share nothing that either can change."""

    def call(self, call: Call) -> Result:
        """Run one call. A fault of the call is an error Result, never an exception; `shown` equals `raw`."""
        ...

    def state(self) -> Mapping[str, Json]:
        """The public state that the verifier compares, as plain JSON-like values, `{part: value}`."""
        ...


class Conversation(Session, Protocol):
    """A session whose user answers what the policy says. All of it is calls: what was said is played, stored, judged
    and replayed like any other call, and its result (`shown`) is the user's next message."""

    opening: Sequence[str]  # what the policy is made to say first, where the user waits for it
    over: str  # "" while the conversation goes on, else the stop reason

    def speech(self, text: str) -> Call:
        """The call that an output without calls stands for."""
        ...


class Environment(Protocol):
    """Stateless but for what it loaded; safe to share between rollouts."""

    name: str
    version: str
    max_steps_per_turn: int
    judges_abstention: bool  # False (BFCL): turns without gold calls are valid whatever was called

    def tasks(self) -> Sequence[Task]:
        """All tasks, in a fixed order, with their splits. Deterministic."""
        ...

    def docs(self, task: Task, turn: int) -> tuple[ToolDoc, ...]:
        """Bare docs of every tool the policy may use at `turn` (withheld ones appear from their reveal turn on)."""
        ...

    def revealed(self, task: Task, turn: int) -> tuple[ToolDoc, ...]:
        """Bare docs of the tools that `turn` itself reveals; the user message of that turn shows them."""
        ...

    def facts(self, tools: Sequence[str]) -> tuple[Fact, ...]:
        """What the executor enforces on these tools; cues may quote nothing else (and mined refusals)."""
        ...

    def open(self, task: Task) -> Session:
        """A fresh session."""
        ...

    def guidance(self, task: Task) -> tuple[str, ...]:
        """What the policy is told beside its tools (a business's rules); most environments tell nothing."""
        ...

    def checks(self, task: Task) -> tuple[str, ...]:
        """Who judges each turn in the place of the gold program ("": nobody); () where nobody judges any."""
        ...

    def courses(self, task: Task, turns: Sequence[Any]) -> "Courses | None":
        """Of a played program, `turns` as in seal.verify.gold; None where every call must be run."""
        ...


class Courses(Protocol):
    """A program whose results and states are known: worlds set out along it, and need not run what is."""

    def session(self, turn: int) -> Session:
        """A world of its own, like one in which the turns before `turn` were played."""
        ...


class Documented:
    """`docs` and `revealed` of an Environment, from the bare docs of every tool that a task knows; and what most
    environments do not have."""

    def documents(self, task: Task) -> Mapping[str, ToolDoc]:
        """Tool -> bare doc, of at least the task's toolset."""
        raise NotImplementedError  # each environment has its own

    def docs(self, task: Task, turn: int) -> tuple[ToolDoc, ...]:
        known = self.documents(task)
        return tuple(known[name] for name in in_sight(task, turn))

    def revealed(self, task: Task, turn: int) -> tuple[ToolDoc, ...]:
        known = self.documents(task)
        return tuple(known[name] for name in revealed_at(task, turn))

    def guidance(self, task: Task) -> tuple[str, ...]:
        return ()

    def checks(self, task: Task) -> tuple[str, ...]:
        return ()

    def courses(self, task: Task, turns: Sequence[Any]) -> Courses | None:
        return None


def converse(env: Environment, task: Task, seed: int) -> Session:
    """The session of a rollout. Where a live user answers, its draws hang on `seed`; `open` is for re-running calls."""
    return env.converse(task, seed) if hasattr(env, "converse") else env.open(task)


def speech(session: Session, text: str) -> Call | None:
    """The call that plain text stands for in a Conversation; None where it hands back to a scripted turn."""
    return session.speech(text) if hasattr(session, "speech") else None


def in_sight(task: Task, turn: int) -> list[str]:
    """Tools the policy may use at `turn`: all but those that a later turn reveals."""
    return [name for name in task.toolset if task.holdout.get(name, 0) <= turn]


def has_gold(env: Environment, task: Task) -> bool:
    """Whether the gold program serves every turn; one that a grader judges may have none."""
    return not any(name and not turn.gold for name, turn in zip(env.checks(task), task.turns, strict=False))


def revealed_at(task: Task, turn: int) -> list[str]:
    """Tools that `turn` itself reveals; none at the first."""
    return [name for name in task.toolset if turn and task.holdout.get(name, 0) == turn]


@dataclass(frozen=True, slots=True, eq=False)
class Posed:
    """An environment and a task as the key of a cache: the same where both are the very same objects."""

    env: Environment
    task: Task

    def __hash__(self) -> int:
        return hash((id(self.env), id(self.task)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Posed) and self.env is other.env and self.task is other.task
