"""The gold program of a task, played once and kept: what every rollout of the task is compared with."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from seal.core.types import Call, Json, Task
from seal.env.base import Environment, KnownProgram, Session, TaskKey

CACHED_TASKS = 256  # rollouts are judged task by task, so few are in use at a time


@dataclass(frozen=True, slots=True, eq=False)
class GoldTurn:
    """One user turn of the gold program: its calls, their raw results, also counted, and the state around the turn.
    `keys`: each call's name and its arguments as text.

    Of two states, a part that is the same is the very same object.
    """

    calls: tuple[Call, ...]
    keys: tuple[tuple[str, str], ...]
    results: tuple[str, ...]
    wanted: Mapping[str, int]
    before: Mapping[str, Json]
    state: Mapping[str, Json]

    def is_played(self, calls: Sequence[Call]) -> bool:
        """Whether calls are these, values of equal types included: they then do and tell the same."""
        if len(calls) != len(self.calls):
            return False
        return all((call.name, repr(call.arguments)) == key for call, key in zip(calls, self.keys, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class Gold:
    """The gold program turn by turn, and as a KnownProgram where the environment has such."""

    turns: tuple[GoldTurn, ...]
    known: KnownProgram | None


def gold_program(env: Environment, task: Task) -> Gold:
    """From a fresh session; played again only after many other tasks."""
    return _replay(TaskKey(env, task))


@lru_cache(maxsize=CACHED_TASKS)
def _replay(played: TaskKey) -> Gold:
    session, turns = played.env.open(played.task), []
    state = session.state()
    for turn in played.task.turns:
        results = tuple(session.raw_results(turn.gold))
        before, state = state, session.state_since(state)
        keys = tuple((call.name, repr(call.arguments)) for call in turn.gold)
        turns.append(GoldTurn(tuple(turn.gold), keys, results, Counter(results), before, state))
    return Gold(tuple(turns), played.env.known_program(played.task, turns))


def resumed(env: Environment, task: Task, gold: Gold, turn: int) -> Session:
    """A session of its own in which the gold turns before `turn` were played."""
    if gold.known is not None:
        return gold.known.session(turn)
    session = env.open(task)
    for played in gold.turns[:turn]:
        session.raw_results(played.calls)
    return session
