"""The gold program of a task, played once and kept: what every rollout of the task is compared with."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from seal.core.types import Call, Json, Task
from seal.env.base import Environment, Session

KEPT_TASKS = 256  # rollouts are judged task by task, so few are in use at a time


@dataclass(frozen=True, slots=True, eq=False)
class GoldTurn:
    """One user turn of the gold program: its calls, their raw results, also counted, and the state around the turn.

    Of two states, a part that is the same is the very same object.
    """

    calls: tuple[Call, ...]
    results: tuple[str, ...]
    wanted: Mapping[str, int]
    before: Mapping[str, Json]
    state: Mapping[str, Json]

    def is_played(self, calls: Sequence[Call]) -> bool:
        """Whether calls are these, values of equal types included: they then do and tell the same."""
        if len(calls) != len(self.calls):
            return False
        pairs = zip(calls, self.calls)
        return all(a.name == b.name and repr(a.arguments) == repr(b.arguments) for a, b in pairs)


@dataclass(frozen=True, slots=True, eq=False)
class _Played:
    """An environment and a task, the same where both are the very same objects."""

    env: Environment
    task: Task

    def __hash__(self) -> int:
        return hash((id(self.env), id(self.task)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Played) and self.env is other.env and self.task is other.task


def gold_turns(env: Environment, task: Task) -> tuple[GoldTurn, ...]:
    """The gold program turn by turn, from a fresh session; played again only after many other tasks."""
    return _replay(_Played(env, task))


@lru_cache(maxsize=KEPT_TASKS)
def _replay(played: _Played) -> tuple[GoldTurn, ...]:
    session, turns = played.env.open(played.task), []
    state = session.state()
    for turn in played.task.turns:
        results = tuple(raws(session, turn.gold))
        before, state = state, _after(session, state)
        turns.append(GoldTurn(tuple(turn.gold), results, Counter(results), before, state))
    return tuple(turns)


def opened(env: Environment, task: Task, gold: Sequence[GoldTurn]) -> Session:
    """A fresh session; some need not be compared with the gold state in what nobody touched."""
    session = env.open(task)
    if hasattr(session, "starts_as"):
        session.starts_as(gold[0].before)
    return session


def _after(session: Session, before: Mapping[str, Json]) -> Mapping[str, Json]:
    """The state, which shares with that of the turn before what is the same."""
    if not hasattr(session, "unlike"):
        return session.state()
    found = session.unlike(before)
    return {part: {**held, **found[part]} if part in found else held for part, held in before.items()}


def raws(session: Session, calls: Sequence[Call]) -> list[str]:
    """The raw results of calls; some sessions tell them without a look at what they say."""
    return session.raws(calls) if hasattr(session, "raws") else [session.call(call).raw for call in calls]


def rerun(session: Session, calls: Sequence[Call], results: Sequence[str]) -> None:
    """Run calls whose results are known; some sessions need not word them again."""
    if hasattr(session, "rerun"):
        session.rerun(calls, results)
    else:
        for call in calls:
            session.call(call)


def unlike(session: Session, expected: Mapping[str, Json]) -> tuple[Mapping[str, Json], Mapping[str, Json]]:
    """Ours and theirs, as far as the public state differs from `expected`; two equal states where it does not."""
    if not hasattr(session, "unlike"):
        return session.state(), expected
    found = session.unlike(expected)
    return found, {part: {name: expected[part][name] for name in attributes} for part, attributes in found.items()}
