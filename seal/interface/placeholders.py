"""What a recovery template may name: tools and parameters of the docs in sight, never a value.

A template such as "required {missing}" belongs to an error kind; the words in braces are filled from the failing call
and the docs alone. A template with an empty slot is not shown.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from seal.core.types import Call, Json, Param, ToolDoc
from seal.tools.prose import enum_of, format_in_text, one_of, range_in_text
from seal.tools.schema import fits

SLOT = re.compile(r"\{(\w+)\}")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_READS = frozenset(
    {"get", "list", "find", "search", "view", "show", "display", "check", "lookup", "fetch", "read", "retrieve"}
)
_SESSION = frozenset({"login", "logout"})  # of a tool that reads nothing but who is logged in
_NOISE = frozenset(
    {
        "error",
        "during",
        "execution",
        "given",
        "current",
        "for",
        "from",
        "no",
        "not",
        "the",
        "with",
        "all",
        "and",
        "any",
        "by",
        "of",
        "to",
        "in",
        "i",
    }
)


@dataclass(frozen=True, slots=True)
class Failure:
    """One error as the interface sees it. `doc` is None when no tool of that name is in sight."""

    name: str
    arguments: Mapping[str, Json]
    kind: str
    raw: str
    docs: tuple[ToolDoc, ...]

    @property
    def doc(self) -> ToolDoc | None:
        return next((doc for doc in self.docs if doc.name == self.name), None)


def failure_of(call: Call, kind: str, raw: str, docs: Sequence[ToolDoc]) -> Failure:
    return Failure(call.name, call.arguments, kind, raw, tuple(docs))


def failing_params(failure: Failure) -> tuple[str, ...]:
    """Documented parameters the error is about: those it names, else those its kind points to."""
    if failure.doc is None:
        return ()
    params = failure.doc.params
    named = tuple(p.name for p in params if re.search(rf"(?<!\w){re.escape(p.name)}(?!\w)", failure.raw))
    if named:
        return named
    if failure.kind == "missing_argument":
        return tuple(p.name for p in _missing(failure))
    if failure.kind == "wrong_type":
        return tuple(p.name for p in _mistyped(failure))
    if failure.kind in ("invalid_value", "not_found"):
        return tuple(p.name for p in params if p.name in failure.arguments)
    return ()


def _missing(failure: Failure) -> list[Param]:
    params = failure.doc.params if failure.doc else ()
    return [p for p in params if p.required and p.name not in failure.arguments]


def _mistyped(failure: Failure) -> list[Param]:
    params, given = failure.doc.params if failure.doc else (), failure.arguments
    return [p for p in params if p.name in given and not fits(given[p.name], p.type, exact=True)]


def _keys(names: Sequence[str]) -> str:
    return " ".join(f"{name}=" for name in names)


def _types(failure: Failure) -> str:
    wanted = set(failing_params(failure))
    params = failure.doc.params if failure.doc else ()
    return " ".join(f"{p.name}= {p.type}" for p in params if p.name in wanted)


def _allowed(failure: Failure) -> str:
    wanted = set(failing_params(failure))
    params = failure.doc.params if failure.doc else ()
    told = ((p.name, _values(p)) for p in params if p.name in wanted)
    return " ".join(f"{name}= {text}" for name, text in told if text)


def _values(param: Param) -> str:
    """What the docs say a value must be: one of a list, of a format, within bounds."""
    if values := enum_of(param):
        return one_of(values)
    bounds = range_in_text(param.description)
    form = format_in_text(param.description)
    return f"format {form}" if form else f"from {bounds[0]} to {bounds[1]}" if bounds else ""


def _params(failure: Failure) -> str:
    if failure.doc is None:
        return ""
    return f"only {_keys([p.name for p in failure.doc.params])}" if failure.doc.params else "no arguments"


def nearest(failure: Failure, n: int = 3) -> tuple[str, ...]:
    """Up to `n` names of tools in sight that look most like the unknown one (or like a word of the error)."""
    names = [doc.name for doc in failure.docs]
    asked = [failure.name] if failure.name else _WORD.findall(failure.raw)
    best = {name: max((_likeness(word, name) for word in asked), default=0.0) for name in names}
    return tuple(sorted((name for name in names if best[name] >= 0.5), key=lambda name: (-best[name], name))[:n])


def _likeness(a: str, b: str) -> float:
    return difflib.SequenceMatcher(None, a.lower(), b.lower(), autojunk=False).ratio()


def lookups(failure: Failure, n: int = 3) -> tuple[str, ...]:
    """Up to `n` reading tools in sight whose names share a noun with the error or with the failing parameters."""
    asked = nouns(failure.raw) | {noun for name in failing_params(failure) for noun in nouns(name)}
    shared = {}
    for doc in failure.docs:
        words = nouns(doc.name)
        reads = doc.name != failure.name and words & _READS and not words & _SESSION
        if reads and (common := (words - _READS) & asked):
            shared[doc.name] = len(common)
    return tuple(sorted(shared, key=lambda name: (-shared[name], name))[:n])


def nouns(text: str) -> set[str]:
    """Lower-case words of a name or text, plurals cut: `get_airports`, `listAirports` share airport."""
    words = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower())
    return {re.sub(r"ies$", "y", word) if word.endswith("ies") else word.removesuffix("s") for word in words} - _NOISE


SLOTS: Mapping[str, Callable[[Failure], str]] = {
    "missing": lambda failure: _keys([p.name for p in _missing(failure)]),
    "params": _params,
    "types": _types,
    "allowed": _allowed,
    "nearest": lambda failure: " ".join(nearest(failure)),
    "lookup": lambda failure: " ".join(lookups(failure)),
}


def fill(template: str, failure: Failure) -> str:
    """The template with its slots filled; "" when one of them has nothing to say."""
    values = {slot: SLOTS[slot](failure) for slot in SLOT.findall(template) if slot in SLOTS}
    return "" if not all(values.values()) else SLOT.sub(lambda m: values.get(m[1], m[0]), template)
