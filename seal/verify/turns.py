"""A verdict for every user turn, without early return: the policy's calls and the gold calls run side by side."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence

from seal.core.types import Call, Json, Task, Verdict
from seal.env.base import Environment


def verify(env: Environment, task: Task, calls_by_turn: Sequence[Sequence[Call]]) -> list[Verdict]:
    """Judge all user turns of a task. Pure: both programs run on fresh sessions.

    state_ok     the public state equals the gold state after the turn
    response_ok  the turn's gold results are a sub-multiset of all results so far (order free, extra results free)
    valid        both; in a turn without gold calls: no state change beyond gold's where the environment judges
                 abstention, else (BFCL) always. A turn with gold calls and no call of the policy is never valid.
    """
    played, gold = env.open(task), env.open(task)
    results: Counter[str] = Counter()
    verdicts = []
    for turn, (calls, target) in enumerate(zip(calls_by_turn, (t.gold for t in task.turns), strict=True)):
        results.update(played.call(call).raw for call in calls)
        wanted = Counter(gold.call(call).raw for call in target)
        state, expected = played.state(), gold.state()
        state_ok = state == expected
        missing = wanted - results
        response_ok = not missing
        if target:
            valid = state_ok and response_ok and bool(calls)
        else:
            valid = state_ok or not env.judges_abstention
        evidence: dict[str, Json] = {}
        if not state_ok:
            evidence |= first_difference(state, expected)
        if missing:
            evidence["missing_results"] = len(list(missing.elements()))
            evidence["missing_digest"] = digest(sorted(missing))
        if target and not calls:
            evidence["no_calls"] = True
        verdicts.append(Verdict(turn, state_ok, response_ok, valid, 1.0, evidence))
    return verdicts


def first_difference(state: Mapping[str, Json], expected: Mapping[str, Json]) -> dict[str, Json]:
    """The first part (by name) that differs, with digests of both sides: evidence without the answer."""
    absent = object()
    for part in sorted({*state, *expected}):
        ours, theirs = state.get(part, absent), expected.get(part, absent)
        if ours != theirs:
            attribute = part
            if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
                names = sorted({*ours, *theirs}, key=str)
                attribute = f"{part}.{next(n for n in names if ours.get(n, absent) != theirs.get(n, absent))}"
            return {
                "attribute": attribute,
                "actual": "absent" if ours is absent else digest(ours),
                "expected": "absent" if theirs is absent else digest(theirs),
            }
    return {}


def digest(value: Json) -> str:
    """8 hex digits of a JSON-like value."""
    text = json.dumps(_text_keys(value), sort_keys=True, default=repr)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _text_keys(value: Json) -> Json:
    """Keys of mixed types (an id as number beside one as text) cannot be sorted: those that are no text are marked."""
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else f"<{key!r}>": _text_keys(item) for key, item in value.items()}
    return [_text_keys(item) for item in value] if isinstance(value, list | tuple) else value
