"""What an environment is: tasks, bare docs, facts, and sessions that execute literal calls."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from seal.core.types import Call, Fact, Json, Result, Task, ToolDoc


class Session(Protocol):
    """One isolated instance of the world of one task. Two sessions share nothing that either can change."""

    def call(self, call: Call) -> Result:
        """Run one call. A fault of the call is an error Result, never an exception; `shown` equals `raw`."""
        ...

    def state(self) -> Mapping[str, Json]:
        """The public state that the verifier compares, as plain JSON-like values, `{part: value}`."""
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


def in_sight(task: Task, turn: int) -> list[str]:
    """Tools the policy may use at `turn`: all but those that a later turn reveals."""
    return [name for name in task.toolset if task.holdout.get(name, 0) <= turn]


def revealed_at(task: Task, turn: int) -> list[str]:
    """Tools that `turn` itself reveals; none at the first."""
    return [name for name in task.toolset if turn and task.holdout.get(name, 0) == turn]
