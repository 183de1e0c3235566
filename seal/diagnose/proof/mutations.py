"""The ways in which the proof of the diagnosis breaks a gold program: Place -> what is said; None: no place for it.

One of a call gives steps in the place of that call, one of a turn the script of the whole turn.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from seal.core.types import Call, Json
from seal.diagnose.proof.place import Place
from seal.policy import faults
from seal.policy.faults import Site, TurnScript, steps_of
from seal.tools.parse import format_calls, parse

DRAWS = 8  # tries to break a text or misspell a name in a way that counts
MARKS = "()[]{}<>\"',:="
PROSE = "I am not sure what to do here."


def _broken(p: Place, change: Callable[[str], str]) -> TurnScript | None:
    """The call's text, changed until nothing of it can be read as a call though it looks like one."""
    text = format_calls((p.call,), p.format)
    for _ in range(DRAWS):
        found = parse(broken := change(text), p.format, p.env.docs(p.task, p.turn))
        if found.errors and not found.calls:
            return (broken,)
    return None


def truncated(p: Place) -> TurnScript | None:
    return _broken(p, lambda text: text[: p.rng.randrange(1, len(text))])


def malformed(p: Place) -> TurnScript | None:
    def without_a_mark(text: str) -> str:
        at = p.rng.choice([i for i, char in enumerate(text) if char in MARKS] or [0])
        return text[:at] + text[at + 1 :]

    return _broken(p, without_a_mark)


def typo(text: str, rng: random.Random) -> str:
    """One slip of the keyboard: a character doubled, left out, or exchanged with its neighbour."""
    at = rng.randrange(len(text))
    slip = rng.randrange(3)
    if slip == 0 or len(text) < 2:
        return text[: at + 1] + text[at:]
    if slip == 1:
        return text[:at] + text[at + 1 :]
    at = min(at, len(text) - 2)
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]


def _misspelt(text: str, rng: random.Random, taken: Sequence[str] | Mapping) -> str | None:
    found = (typo(text, rng) for _ in range(DRAWS))
    return next((word for word in found if word not in taken and word.isidentifier()), None)


def misspelt_tool(p: Place) -> TurnScript | None:
    name = _misspelt(p.call.name, p.rng, p.docs)
    return ((Call(name, p.call.arguments),),) if name else None


def misspelt_parameter(p: Place) -> TurnScript | None:
    old = p.pick(sorted(p.call.arguments))
    new = _misspelt(old, p.rng, p.docs.get(p.call.name, {})) if old else None
    return ((Call(p.call.name, {new if k == old else k: v for k, v in p.call.arguments.items()}),),) if new else None


def missing_argument(p: Place) -> TurnScript | None:
    name = p.pick([n for n, required in p.docs.get(p.call.name, {}).items() if required and n in p.call.arguments])
    return ((faults.without(p.call, name),),) if name else None


def wrong_type(p: Place) -> TurnScript | None:
    if p.format == "words":  # there is nothing but words in it
        return None
    name = p.pick([n for n, v in sorted(p.call.arguments.items()) if faults.retyped(v) is not None])
    return p.with_value(name, faults.retyped(p.call.arguments[name])) if name else None


def altered_literal(p: Place) -> TurnScript | None:
    """Another value than the one the user gave, that nothing in the world and nothing that was said bears."""
    free = [n for n in sorted(p.call.arguments) if (p.call.name, n, "enum") not in p.facts]
    name = p.pick([n for n in free if p.is_said(p.bare(p.call, n))])
    if not name:
        return None
    old = p.bare(p.call, name)
    for _ in range(DRAWS):
        new = typo(old, p.rng) if isinstance(old, str) and old else old + p.rng.randrange(1, 10) if old else None
        if new and new != old and str(new) not in p.world and not p.is_said(new):
            return p.with_value(name, p.prefix(p.call.name, name) + new if isinstance(new, str) else new)
    return None


def wrong_code(p: Place) -> TurnScript | None:
    """The code of another word, or one that no word has."""
    name = p.pick([n for n in sorted(p.call.arguments) if (p.call.name, n, "enum") in p.facts])
    if not name:
        return None
    codes = p.facts[p.call.name, name, "enum"]
    codes = sorted(map(str, codes.values() if isinstance(codes, Mapping) else codes))
    return p.with_value(name, p.rng.choice([c for c in codes if c != p.call.arguments[name]] + ["K99"]))


def wrong_format(p: Place) -> TurnScript | None:
    name = p.pick([n for n in sorted(p.call.arguments) if p.prefix(p.call.name, n)])
    if not name:
        return None
    right = p.prefix(p.call.name, name)
    return p.with_value(name, p.rng.choice(["", right.lower(), right.strip("-")]) + str(p.bare(p.call, name)))


def _others(p: Place, call: Call) -> list[tuple[str, Json]]:
    """(parameter, the thing an earlier turn's call was about in its place), both things of the world."""
    found = []
    for name in sorted(call.arguments):
        if (call.name, name, "enum") in p.facts or not (isinstance(call.arguments[name], str) or "id" in name):
            continue
        value = p.bare(call, name)
        for earlier in p.past:
            other = p.bare(earlier, name) if name in earlier.arguments else value
            if type(other) is type(value) and other != value and {str(other), str(value)} <= p.world:
                found.append((name, other))
    return found


def stale_referent(p: Place) -> TurnScript | None:
    chosen = p.pick(_others(p, p.call))
    if not chosen:
        return None
    name, other = chosen
    return p.with_value(name, p.prefix(p.call.name, name) + other if isinstance(other, str) else other)


def skipped(rule: str) -> Callable[[Place], TurnScript | None]:
    def skip(p: Place) -> TurnScript | None:
        later = p.gold[p.index + 1 :]
        return () if any(p.call.name in p.facts.get((o.name, "", rule), ()) for o in later) else None

    return skip


def _bad(p: Place) -> TurnScript | None:
    """A call that its tool must refuse for its form."""
    return p.rng.choice((missing_argument, misspelt_parameter))(p)


def repeated_failure(p: Place) -> TurnScript | None:
    bad = _bad(p)
    return bad * p.rng.choice((2, 3)) if bad else None


def ignored_error(p: Place) -> TurnScript | None:
    return _bad(p) if p.index + 1 < len(p.gold) else None


def recovered(p: Place) -> TurnScript | None:
    bad = _bad(p)
    return (*bad, (p.call,)) if bad else None


def explored(p: Place) -> TurnScript | None:
    return (p.rng.choice([*p.past, p.call]),), (p.call,)


def restated(p: Place) -> TurnScript | None:
    """The same call, its arguments in another order."""
    items = list(p.call.arguments.items())
    p.rng.shuffle(items)
    return ((Call(p.call.name, dict(items)),),) if len(items) > 1 else None


def of_call(kind: str) -> Callable[[Place], TurnScript | None]:
    return lambda p: faults.CALL_FAULTS[kind](Site(p.task, p.turn, p.index), p.rng)


def other_thing(p: Place) -> TurnScript | None:
    """The whole turn, consistently, about a thing that an earlier turn was about."""
    options = [(p.bare(call, name), other) for call in p.gold for name, other in _others(p, call)]
    chosen = p.pick([(old, new) for old, new in options if p.is_said(old)])
    if not chosen:
        return None
    old, new = chosen

    def moved(call: Call) -> Call:
        change = {n: p.prefix(call.name, n) + new for n in call.arguments if p.bare(call, n) == old}
        return Call(call.name, {**call.arguments, **change})

    return steps_of([moved(call) for call in p.gold]) if isinstance(new, str) else None


def gave_up(p: Place) -> TurnScript | None:
    """An error, and the rest of the turn is left undone."""
    at = p.rng.randrange(len(p.gold)) if p.gold else 0
    bad = _bad(replace(p, index=at)) if at + 1 < len(p.gold) else None
    return (*steps_of(p.gold[:at]), *bad) if bad else None


def asks(p: Place) -> TurnScript | None:
    return (PROSE,) if p.gold and p.format != "words" else None


def of_turn(kind: str) -> Callable[[Place], TurnScript | None]:
    return lambda p: faults.TURN_FAULTS[kind](p.task, p.turn, p.rng)
