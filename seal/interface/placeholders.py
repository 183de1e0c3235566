"""What a recovery template may name: tools and parameters of the docs in sight, never a value.

A template such as "required {missing}" belongs to an error kind; the words in braces are filled from the failing call
and the docs alone. A template with an empty placeholder is not shown.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from seal.core.types import Call, Param, ToolDoc
from seal.tools.prose import enum_of, format_in_text, one_of, range_in_text
from seal.tools.schema import fits

PLACEHOLDER = re.compile(r"\{(\w+)\}")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_READS = frozenset("get list find search view show display check lookup fetch read retrieve".split())
_SESSION = frozenset({"login", "logout"})  # of a tool that reads nothing but who is logged in
_NOISE = frozenset("error during execution given current for from no not the with all and any by of to in i".split())


@dataclass(frozen=True, slots=True)
class Failure:
    """One error as the interface sees it: a failed call (its name is "" for text that is none), the error, and the bare
    docs of the tools in sight."""

    call: Call
    kind: str
    raw: str
    docs: tuple[ToolDoc, ...]

    @property
    def doc(self) -> ToolDoc | None:
        """That of the called tool; None when no tool of that name is in sight."""
        return next((doc for doc in self.docs if doc.name == self.call.name), None)

    @property
    def params(self) -> tuple[Param, ...]:
        return self.doc.params if self.doc else ()

    @property
    def missing(self) -> list[Param]:
        """Required parameters that were left out."""
        return [p for p in self.params if p.required and p.name not in self.call.arguments]

    @property
    def blamed(self) -> tuple[Param, ...]:
        """Parameters the error is about: those it names, else those its kind points to."""
        named = tuple(p for p in self.params if re.search(rf"(?<!\w){re.escape(p.name)}(?!\w)", self.raw))
        if named or self.kind == "missing_argument":
            return named or tuple(self.missing)
        given = tuple(p for p in self.params if p.name in self.call.arguments)
        if self.kind == "wrong_type":
            return tuple(p for p in given if not fits(self.call.arguments[p.name], p.type, exact=True))
        return given if self.kind in ("invalid_value", "not_found") else ()


def _keys(params: Iterable[Param]) -> str:
    return " ".join(f"{p.name}=" for p in params)


def _types(failure: Failure) -> str:
    return " ".join(f"{p.name}= {p.type}" for p in failure.blamed)


def _allowed(failure: Failure) -> str:
    return " ".join(f"{p.name}= {text}" for p in failure.blamed if (text := _values(p)))


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
    return f"only {_keys(failure.params)}" if failure.params else "no arguments"


def nearest(failure: Failure, n: int = 3) -> tuple[str, ...]:
    """Up to `n` names of tools in sight that look most like the unknown one (or like a word of the error)."""
    wanted = [failure.call.name] if failure.call.name else _WORD.findall(failure.raw)
    best = {doc.name: max((_likeness(word, doc.name) for word in wanted), default=0.0) for doc in failure.docs}
    return tuple(sorted((name for name in best if best[name] >= 0.5), key=lambda name: (-best[name], name))[:n])


def _likeness(a: str, b: str) -> float:
    return difflib.SequenceMatcher(None, a.lower(), b.lower(), autojunk=False).ratio()


def lookups(failure: Failure, n: int = 3) -> tuple[str, ...]:
    """Up to `n` reading tools in sight whose names share a noun with the error or with the failing parameters."""
    wanted = nouns(failure.raw) | {noun for p in failure.blamed for noun in nouns(p.name)}
    shared = {}
    for doc in failure.docs:
        words = nouns(doc.name)
        reads = doc.name != failure.call.name and words & _READS and not words & _SESSION
        if reads and (common := (words - _READS) & wanted):
            shared[doc.name] = len(common)
    return tuple(sorted(shared, key=lambda name: (-shared[name], name))[:n])


def nouns(text: str) -> set[str]:
    """Lower-case words of a name or text, plurals cut: `get_airports`, `listAirports` share airport."""
    words = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower())
    return {re.sub(r"ies$", "y", word) if word.endswith("ies") else word.removesuffix("s") for word in words} - _NOISE


PLACEHOLDERS: Mapping[str, Callable[[Failure], str]] = {
    "missing": lambda failure: _keys(failure.missing),
    "params": _params,
    "types": _types,
    "allowed": _allowed,
    "nearest": lambda failure: " ".join(nearest(failure)),
    "lookup": lambda failure: " ".join(lookups(failure)),
}


def fill(template: str, failure: Failure) -> str:
    """The template with its placeholders filled; "" when one of them has nothing to say."""
    names = [name for name in PLACEHOLDER.findall(template) if name in PLACEHOLDERS]
    values = {name: PLACEHOLDERS[name](failure) for name in names}
    return "" if not all(values.values()) else PLACEHOLDER.sub(lambda m: values.get(m[1], m[0]), template)
