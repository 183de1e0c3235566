"""Re-execution: what some calls do to the world after some other calls."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from seal.core.types import Call, Json, Result, Task
from seal.env.base import Environment, Session, TaskKey

KEPT_TASKS = 256


@dataclass(frozen=True, slots=True)
class Trace:
    """`results` and `wrote` align with the calls; `wrote`: the public state changed. States are snapshots."""

    results: tuple[Result, ...]
    wrote: tuple[bool, ...]
    before: Mapping[str, Json]
    after: Mapping[str, Json]


def trace(env: Environment, task: Task, before: Sequence[Call], calls: Sequence[Call]) -> Trace:
    """Run `before` and then `calls` in a fresh session, looking at the state around each of `calls`."""
    session = env.open(task)
    for call in before:
        session.call(call)
    return _traced(session, calls)


def _traced(session: Session, calls: Sequence[Call]) -> Trace:
    states = [_frozen(session.state())]
    results = []
    for call in calls:
        results.append(session.call(call))
        states.append(_frozen(session.state()))
    wrote = tuple(old != new for old, new in zip(states, states[1:], strict=False))
    return Trace(tuple(results), wrote, json.loads(states[0]), json.loads(states[-1]))


def gold_traces(env: Environment, task: Task) -> tuple[Trace, ...]:
    """The gold calls of each turn after those of the turns before it; kept: many rollouts of a task are judged."""
    return _gold_traces(TaskKey(env, task))


@lru_cache(maxsize=KEPT_TASKS)
def _gold_traces(played: TaskKey) -> tuple[Trace, ...]:
    session, traces = played.env.open(played.task), []
    for turn in played.task.turns:
        traces.append(_traced(session, turn.gold))
    return tuple(traces)


def _frozen(state: Mapping[str, Json]) -> str:
    """A copy that later calls cannot change."""
    return json.dumps(state, default=str)


def leaves(value: Json, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Json]:
    """Every scalar (and empty container) of a nested value by its path."""
    if isinstance(value, Mapping) and value:
        return {k: v for key, item in value.items() for k, v in leaves(item, (*path, str(key))).items()}
    if isinstance(value, list | tuple) and value:
        return {k: v for i, item in enumerate(value) for k, v in leaves(item, (*path, str(i))).items()}
    return {path: value}


def delta(before: Json, after: Json) -> dict[tuple[str, ...], tuple[Json, Json]]:
    """Path -> (old, new) of every leaf that differs; None where there was none."""
    old, new = leaves(before), leaves(after)
    paths = (p for p in sorted(old.keys() | new.keys()) if old.get(p) != new.get(p) or (p in old) != (p in new))
    return {path: (old.get(path), new.get(path)) for path in paths}
