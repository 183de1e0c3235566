"""Gold arguments that no verdict can see: with another value the state and all results are the same."""

from collections.abc import Iterator, Sequence

from seal.core.types import Call, Json, Task, ToolDoc
from seal.env.base import Environment

TRIES = 3  # gold calls, and other values of each, before a parameter counts as unseen
Place = tuple[Task, int, int]  # of a gold call: its task, turn, number


def unseen_arguments(env: Environment, tasks: Sequence[Task], docs: Sequence[ToolDoc]) -> Iterator[str]:
    """`tool.parameter (task id)` of each that is seen in none of its first gold calls. Turns with a check are not
    looked at: somebody else judges them."""
    places: dict[tuple[str, str], list[Place]] = {}
    values = {(doc.name, param.name): list(param.enum or ()) for doc in docs for param in doc.params}
    for task in tasks:
        for turn, (entry, check) in enumerate(zip(task.turns, env.checks(task), strict=True)):
            for i, call in enumerate(() if check else entry.gold):
                for name, value in call.arguments.items():
                    places.setdefault((call.name, name), []).append((task, turn, i))
                    values.setdefault((call.name, name), []).append(value)
    for key, found in places.items():
        if not any(_is_seen(env, place, key[1], values[key]) for place in found[:TRIES]):
            yield f"{'.'.join(key)} (task {found[0][0].task_id})"


def _is_seen(env: Environment, place: Place, name: str, known: Sequence[Json]) -> bool:
    """Whether another value, one that is not refused, makes a difference. Where all are refused, that is one."""
    task, turn, i = place
    call = task.turns[turn].gold[i]
    value, right = call.arguments[name], _outcome(env, place, call)
    others = [other for other in (*known, *_others(value)) if other != value]
    for other in others[:TRIES]:
        kind, *found = _outcome(env, place, Call(call.name, {**call.arguments, name: other}))
        if not kind:
            return tuple(found) != right[1:]
    return True


def _others(value: Json) -> tuple[Json, ...]:
    if isinstance(value, bool):
        return (not value,)
    if isinstance(value, int | float):
        return (value + 1,)
    return (f"{value} too",) if isinstance(value, str) else ()


def _outcome(env: Environment, place: Place, changed: Call) -> tuple[str, list[str], list[Json]]:
    """The gold program with one call changed: its kind of error, all results, the state after each turn."""
    task, at, number = place
    session, kind, results, states = env.open(task), "", [], []
    for turn, entry in enumerate(task.turns):
        for i, call in enumerate(entry.gold):
            result = session.call(changed if (turn, i) == (at, number) else call)
            results.append(result.raw)
            if (turn, i) == (at, number):
                kind = result.error_kind
        states.append(session.state())
    return kind, sorted(results), states
