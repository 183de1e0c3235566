"""What bare docs tell in prose or between the lines, as facts: formats, units, ranges, defaults, examples, siblings.

All of it is documented, so a cue repeats it only where the failure persists. A sibling is the tool of the same toolset
whose name and purpose share the most words; its note says what that one is for.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from seal.core.types import Call, Fact, Json, Param, ToolDoc
from seal.interface.placeholders import nouns
from seal.tools.parse import format_calls
from seal.tools.prose import enum_of, format_in_text, purpose_in_text, range_in_text, unit_in_text, values_in_text

ALIKE = 0.5  # of the words of two tools' names and purposes, in common
_NO_DEFAULT = (None, "", "None")  # BFCL writes a missing default as text
_PLACEHOLDER = "<{}>"


def facts_of_docs(
    docs: Sequence[ToolDoc], call_format: str, toolsets: Iterable[Collection[str]] = ()
) -> tuple[Fact, ...]:
    """Facts of the prose of `docs`, in their order. `toolsets`: tools that stand together; () means all do."""
    companions = companions_of([doc.name for doc in docs], toolsets)
    facts: list[Fact] = []
    for doc in docs:
        facts.append(Fact(doc.name, "", "example", example_of(doc, call_format), documented=True))
        if near := siblings_of(doc, [other for other in docs if other.name in companions[doc.name]]):
            facts.append(Fact(doc.name, "", "sibling", near, documented=True))
        facts += [Fact(doc.name, p.name, kind, value, documented=True) for p in doc.params for kind, value in _of(p)]
    return tuple(facts)


def _of(param: Param) -> Iterator[tuple[str, Json]]:
    """(kind, value) of what a parameter's description says beside its schema."""
    if not enum_of(param) and (values := values_in_text(param.description)):
        yield "enum", values if isinstance(values, Mapping) else list(values)
    if text := format_in_text(param.description):
        yield "format", text
    if bounds := range_in_text(param.description):
        yield "range", list(bounds)
    if unit := unit_in_text(param.description):
        yield "unit", unit
    if not param.required and param.default not in _NO_DEFAULT and param.default != []:
        yield "default", param.default


def example_of(doc: ToolDoc, call_format: str) -> str:
    """A call of the tool with a placeholder for the value of each required parameter, never a value."""
    marks = {param.name: _PLACEHOLDER.format(param.type or "value") for param in doc.params if param.required}
    text = format_calls((Call(doc.name, marks),), call_format)
    for mark in set(marks.values()) - {_PLACEHOLDER.format("string")}:  # only a text stands in quotes
        text = re.sub(rf"""\\?["']{re.escape(mark)}\\?["']""", mark, text)
    return " ".join(text.split())


def siblings_of(doc: ToolDoc, others: Sequence[ToolDoc]) -> dict[str, str]:
    """{name: purpose} of the tool most like this one; {} where none is alike, or it says the same."""
    words = _words(doc)
    likeness = {other.name: _overlap(words, _words(other)) for other in others if other.name != doc.name}
    best = min(likeness, key=lambda name: (-likeness[name], name), default="")
    if not best or likeness[best] < ALIKE:
        return {}
    purpose = next(purpose_in_text(other.description) for other in others if other.name == best)
    return {} if purpose == purpose_in_text(doc.description) else {best: purpose}


def companions_of(names: Sequence[str], toolsets: Iterable[Collection[str]]) -> dict[str, set[str]]:
    """Tool -> the tools that stand beside it wherever it stands."""
    companions = {name: set(names) for name in names}
    for toolset in {frozenset(toolset) for toolset in toolsets}:
        for name in toolset & companions.keys():
            companions[name] &= toolset
    return companions


def _words(doc: ToolDoc) -> set[str]:
    return nouns(doc.name) | {word for word in nouns(purpose_in_text(doc.description)) if len(word) > 2}


def _overlap(a: set[str], b: set[str]) -> float:
    return len(a & b) / len(a | b) if a | b else 0.0
