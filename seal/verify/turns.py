"""A verdict for every user turn, without early return: the policy's calls run beside the gold program's outcome."""

import hashlib
import json
import marshal
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from seal.core.types import Call, Json, Task, Verdict
from seal.env.base import ABSENT, Environment, Session
from seal.verify.gold import Gold, gold_program, resumed
from seal.verify.graded import graded

_PLAIN = frozenset((str, int, float, bool, type(None)))
_ENCODER = json.JSONEncoder(sort_keys=True, default=repr)


def verify(env: Environment, task: Task, calls_by_turn: Sequence[Sequence[Call]]) -> list[Verdict]:
    """Judge all user turns of a task. Pure: the calls run on a fresh session, the gold program ran on one of its own.

    state_ok     the public state equals the gold state after the turn
    response_ok  the turn's gold results are a sub-multiset of all results so far (order free, extra results free)
    valid        both; in a turn without gold calls: no state change beyond gold's where the environment judges
                 abstention, else (BFCL) always. A turn with gold calls and no call of the policy is never valid.

    Turns that name a grader are judged by it (seal.verify.graded); the others are certain.
    """
    gold = gold_program(env, task)
    pairs = enumerate(zip(calls_by_turn, gold.turns, strict=True))
    as_gold = next((at for at, (calls, turn) in pairs if not turn.is_played(calls)), len(gold.turns))
    verdicts = [Verdict(turn, True, True, True) for turn in range(as_gold)]
    if as_gold < len(gold.turns):
        verdicts += _judged(env, task, gold, as_gold, calls_by_turn)
    return graded(env, task, calls_by_turn, verdicts) if any(env.checks(task)) else verdicts


def _judged(
    env: Environment, task: Task, gold: Gold, start: int, calls_by_turn: Sequence[Sequence[Call]]
) -> Iterator[Verdict]:
    """The verdicts from the turn on in which the policy first said something else than gold."""
    played, results = resumed(env, task, gold, start), {}
    for turn in gold.turns[:start]:
        _count(results, turn.results)
    for turn, (calls, target) in enumerate(zip(calls_by_turn[start:], gold.turns[start:], strict=True), start):
        _count(results, played.raw_results(calls))
        evidence = _evidence(played, target.state)
        state_ok = not evidence
        missing = {raw: n - had for raw, n in target.wanted.items() if n > (had := results.get(raw, 0))}
        if target.calls:
            valid = state_ok and not missing and bool(calls)
        else:
            valid = state_ok or not env.judges_abstention
        if missing:
            evidence["missing_results"] = sum(missing.values())
            evidence["missing_digest"] = digest(sorted(missing))
        if target.calls and not calls:
            evidence["no_calls"] = True
        yield Verdict(turn, state_ok, not missing, valid, 1.0, evidence)


def _count(results: dict[str, int], raws: Sequence[str]) -> None:
    for raw in raws:  # Counter.update, several times as fast on a few
        results[raw] = results.get(raw, 0) + 1


def _evidence(session: Session, expected: Mapping[str, Json]) -> dict[str, Json]:
    """Where the state differs first, with digests of both sides: evidence without the answer."""
    if (found := session.difference(expected)) is None:
        return {}
    attribute, ours, theirs = found
    return {"attribute": attribute, "actual": _digest_of(ours), "expected": _digest_of(theirs)}


def _digest_of(value: Json) -> str:
    return "absent" if value is ABSENT else digest(value)


def digest(value: Json) -> str:
    """8 hex digits of a JSON-like value."""
    try:
        return _cached_digest(marshal.dumps(value, 2))  # 2: equal bytes are equal values
    except ValueError:  # made of more than plain values
        return _digest(value)


@lru_cache(maxsize=1024)
def _cached_digest(value: bytes) -> str:
    """Kept for a while: a wrong state stays for many turns, and what is expected is so for all rollouts of a task."""
    return _digest(marshal.loads(value))


def _digest(value: Json) -> str:
    text = _ENCODER.encode(_text_keys(value))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _text_keys(value: Json) -> Json:
    """Keys of mixed types (an id as number beside one as text) cannot be sorted: those that are no text are marked."""
    if type(value) in _PLAIN:
        return value
    if isinstance(value, Mapping):
        return {
            key if type(key) is str else f"<{key!r}>": item if type(item) in _PLAIN else _text_keys(item)
            for key, item in value.items()
        }
    return [_text_keys(item) for item in value] if isinstance(value, list | tuple) else value
