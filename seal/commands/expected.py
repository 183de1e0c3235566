"""What a failed turn did otherwise than its gold calls, in values, for people: computed when asked, stored nowhere."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from seal.core.types import Call, Json, Task
from seal.env.base import ABSENT, Environment

MOST = 120  # characters of a value


def missed(gold: Sequence[Call], made: Sequence[Call]) -> list[str]:
    """One line for every gold call that was not made: `cancel: expected reason=C1, got C2`.

    It is held against the nearest call of its tool that is no gold call itself.
    """
    due, free = list(gold), list(made)
    for call in gold:
        if call in free:
            free.remove(call)
            due.remove(call)
    return [_line(call, free) for call in due]


def _line(call: Call, free: list[Call]) -> str:
    rivals = [other for other in free if other.name == call.name]
    if not rivals:
        given = ", ".join(f"{name}={said(value)}" for name, value in call.arguments.items())
        return f"expected {call.name}({given}), not called"
    nearest = min(rivals, key=lambda other: len(_differing(call, other)))
    free.remove(nearest)
    parts = [
        f"expected {name}={said(wanted)}, got {said(got)}" if wanted is not ABSENT else f"unexpected {name}={said(got)}"
        for name in _differing(call, nearest)
        for wanted, got in [(call.arguments.get(name, ABSENT), nearest.arguments.get(name, ABSENT))]
    ]
    return f"{call.name}: {'; '.join(parts)}"


def _differing(one: Call, other: Call) -> list[str]:
    names = dict.fromkeys((*one.arguments, *other.arguments))
    return [name for name in names if one.arguments.get(name, ABSENT) != other.arguments.get(name, ABSENT)]


def state_line(env: Environment, task: Task, calls_by_turn: Sequence[Sequence[Call]], turn: int) -> str:
    """Where the state after a turn differs first from gold's; "" where it does not."""
    session, right = env.open(task), env.open(task)
    for calls, entry in zip(calls_by_turn[: turn + 1], task.turns, strict=False):
        session.raw_results(calls)
        right.raw_results(entry.gold)
    if (found := session.difference(right.state())) is None:
        return ""
    place, ours, theirs = found
    while (key := _first_key(ours, theirs)) is not None:
        place, ours, theirs = f"{place}.{key}", _at(ours, key), _at(theirs, key)
    return f"state {place}: expected {said(theirs)}, got {said(ours)}"


def _first_key(one: Json, other: Json) -> Any:
    """Where two mappings, or two lists, differ first; None for any other two."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        keys = dict.fromkeys((*other, *one))
    elif isinstance(one, list | tuple) and isinstance(other, list | tuple):
        keys = range(max(len(one), len(other)))
    else:
        return None
    return next((key for key in keys if _at(one, key) != _at(other, key)), None)


def _at(value: Json, key: Any) -> Any:
    try:
        return value[key]
    except LookupError:
        return ABSENT


def said(value: Json) -> str:
    """A value in a few words; a text of one word without quotes."""
    if value is ABSENT:
        return "nothing"
    is_word = isinstance(value, str) and re.fullmatch(r"[^\s,;\"']+", value)
    text = value if is_word else json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= MOST else f"{text[:MOST]}…"
