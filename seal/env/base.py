"""What an environment is: tasks, bare docs, facts, and sessions that execute literal calls.

What most environments do not need (a user who answers, verdicts of their own, ...) is a method with a default here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from seal.core.types import Call, Fact, Json, Result, Rollout, Task, ToolDoc, Verdict

ABSENT = object()  # a value that one of two states does not have
Difference = tuple[str, Any, Any]  # `part.attribute`, ours, theirs


class Session:
    """One isolated instance of the world of one task. Two sessions share nothing that either can change.

    greeting     what the policy is made to say first, where a user waits for it
    stop_reason  "" while the conversation goes on; a session may end it
    """

    greeting: Sequence[str] = ()
    stop_reason: str = ""

    def call(self, call: Call) -> Result:
        """Run one call. A fault of the call is an error Result, never an exception; `shown` equals `raw`, but for what
        a user answers."""
        raise NotImplementedError  # every environment has its own

    def state(self) -> Mapping[str, Json]:
        """The public state that the verifier compares, as plain JSON-like values, `{part: value}`."""
        raise NotImplementedError  # every environment has its own

    def message_call(self, text: str) -> Call | None:
        """The call that text without calls stands for where a user answers it; None where it hands back to a scripted
        turn. What is said is so played, stored, judged and replayed like any other call; its result (`shown`) is the
        user's next message."""
        return None

    def raw_results(self, calls: Sequence[Call]) -> list[str]:
        """Run calls, for their raw results alone."""
        return [self.call(call).raw for call in calls]

    def state_since(self, before: Mapping[str, Json]) -> Mapping[str, Json]:
        """The state, which may share with an earlier one what is the same."""
        return self.state()

    def difference(self, expected: Mapping[str, Json]) -> Difference | None:
        """The first attribute (by name) in which the state differs; None where it does not."""
        return first_difference(self.state(), expected)


class KnownProgram:
    """A program whose results and states are known: sessions that start along it need not run what is known."""

    def session(self, turn: int) -> Session:
        """A session of its own, like one in which the turns before `turn` were played."""
        raise NotImplementedError  # every environment has its own


class Environment:
    """Stateless but for what it loaded; safe to share between rollouts.

    judges_abstention  False (BFCL): turns without gold calls are valid whatever was called
    live               a user or the web answers: what they would have said to other calls is not known
    live_sessions      how many sessions may be played at once; None: any number
    """

    name: str
    version: str
    max_steps_per_turn: int
    judges_abstention: bool
    live: bool = False
    live_sessions: int | None = None

    def tasks(self) -> Sequence[Task]:
        """All tasks, in a fixed order, with their splits. Deterministic."""
        return self._tasks

    @cached_property
    def _tasks(self) -> Sequence[Task]:
        return self.make_tasks()

    def make_tasks(self) -> Sequence[Task]:
        """What `tasks` gives; asked for once."""
        raise NotImplementedError  # every environment has its own

    def documents(self, task: Task) -> Mapping[str, ToolDoc]:
        """Tool -> bare doc, of at least the task's toolset."""
        raise NotImplementedError  # every environment has its own

    def docs(self, task: Task, turn: int) -> tuple[ToolDoc, ...]:
        """Bare docs of every tool the policy may use at `turn` (withheld ones appear from their reveal turn on)."""
        known = self.documents(task)
        return tuple(known[name] for name in task.toolset if task.holdout.get(name, 0) <= turn)

    def revealed(self, task: Task, turn: int) -> tuple[ToolDoc, ...]:
        """Bare docs of the tools that `turn` itself reveals, none at the first; the turn's user message shows them."""
        known = self.documents(task)
        return tuple(known[name] for name in task.toolset if turn and task.holdout.get(name, 0) == turn)

    def facts(self, tools: Sequence[str]) -> tuple[Fact, ...]:
        """What the executor enforces on these tools; cues may quote nothing else (and learned orders)."""
        raise NotImplementedError  # every environment has its own

    def open(self, task: Task) -> Session:
        """A new session, for re-running calls: nobody outside of this process is asked."""
        raise NotImplementedError  # every environment has its own

    def open_live(self, task: Task, seed: int) -> Session:
        """The session of a rollout. Where a live user answers, its draws hang on `seed`."""
        return self.open(task)

    def guidance(self, task: Task) -> tuple[str, ...]:
        """What the policy is told beside its tools (a business's rules)."""
        return ()

    def checks(self, task: Task) -> tuple[str, ...]:
        """Who judges each turn in the place of the gold program ("": nobody); () where nobody judges any."""
        return ()

    def known_program(self, task: Task, turns: Sequence[Any]) -> KnownProgram | None:
        """Of a played program, `turns` as in seal.verify.gold; None where every call must be run."""
        return None

    def verdicts(self, task: Task, rollout: Rollout) -> list[Verdict] | None:
        """A verdict for every user turn by a rule of the environment's own; None: turn by turn against gold."""
        return None

    def official(self, task: Task, rollout: Rollout, turns: int) -> dict[str, Json] | None:
        """What the benchmark's own checker says of the first `turns` user turns; None without one."""
        return None

    def do_nothing_reward(self, task: Task) -> float | None:
        """The reward of doing nothing; None where a turn without a call that needs one is never valid."""
        return None

    def prove(self) -> None:
        """Show that the gold programs run, where they are not pinned by a package. Raises ParamError."""


def first_difference(state: Mapping[str, Json], expected: Mapping[str, Json]) -> Difference | None:
    """The first attribute (by name) that differs, with both sides; ABSENT where one has none."""
    for part in sorted({*state, *expected}):
        ours, theirs = state.get(part, ABSENT), expected.get(part, ABSENT)
        if ours == theirs:
            continue
        if not isinstance(ours, Mapping) or not isinstance(theirs, Mapping):
            return part, ours, theirs
        for name in sorted({*ours, *theirs}, key=str):
            if ours.get(name, ABSENT) != theirs.get(name, ABSENT):
                return f"{part}.{name}", ours.get(name, ABSENT), theirs.get(name, ABSENT)
    return None


def has_gold(env: Environment, task: Task) -> bool:
    """Whether the gold program serves every turn; one that a grader judges may have none."""
    return not any(name and not turn.gold for name, turn in zip(env.checks(task), task.turns, strict=False))


@dataclass(frozen=True, slots=True, eq=False)
class TaskKey:
    """An environment and a task as the key of a cache: the same where both are the very same objects."""

    env: Environment
    task: Task

    def __hash__(self) -> int:
        return hash((id(self.env), id(self.task)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TaskKey) and self.env is other.env and self.task is other.task
