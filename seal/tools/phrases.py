"""A fact in few words, of fixed forms: `damaged K3 late K1`, `one of A B`, `starts ORD-`, `after verify`."""

import re
from collections.abc import Callable, Mapping

from seal.core.types import Json
from seal.tools.prose import enum_in_text, one_of, purpose_in_text

_PATTERN = re.compile(r"YY|MM|DD|HH|[\\^$*+?()\[\]{}|]|\s")  # a format with any of these is no plain prefix


def required_text(value: Json) -> str:
    return "required" if value else "optional"


def type_text(value: Json) -> str:
    return str(value)


def enum_text(value: Json) -> str:
    """Pairs `word code` sorted by word, a list of values, or the values told in a prose description."""
    if isinstance(value, Mapping):
        return " ".join(f"{word} {code}" for word, code in sorted(value.items()))
    return one_of(enum_in_text(value) if isinstance(value, str) else value)


def format_text(value: Json) -> str:
    text = str(value)
    return f"format {text}" if _PATTERN.search(text) else f"starts {text}"


def needs_text(value: Json) -> str:
    return " ".join(f"after {tool}" for tool in value)


def role_text(value: Json) -> str:
    return " ".join(f"requires {tool}" for tool in value)


def returns_text(value: Json) -> str:
    return f"returns {' '.join(f'{field}=' for field in value)}" if value else ""


def purpose_text(value: Json) -> str:
    return purpose_in_text(str(value))


def range_text(value: Json) -> str:
    return f"from {value[0]} to {value[1]}"


def unit_text(value: Json) -> str:
    return f"in {value}"


def default_text(value: Json) -> str:
    return f"default {str(value).lower() if isinstance(value, bool) else value}"


def example_text(value: Json) -> str:
    return f"call as {value}"


def sibling_text(value: Json) -> str:
    """When another tool is the right one: `mv is for: Move a file or directory from one location to another`."""
    return "; ".join(f"{name} is for: {purpose}" for name, purpose in sorted(value.items()))


# Fact kind -> text, most telling first (the order breaks ties between cues of one parameter).
FACT_TEXTS: Mapping[str, Callable[[Json], str]] = {
    "enum": enum_text,
    "format": format_text,
    "needs": needs_text,
    "role": role_text,
    "returns": returns_text,
    "required": required_text,
    "type": type_text,
    "purpose": purpose_text,
    "range": range_text,
    "unit": unit_text,
    "default": default_text,
    "sibling": sibling_text,
    "example": example_text,
}
