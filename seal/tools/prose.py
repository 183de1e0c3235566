"""What docs tell only in prose, as BFCL does: "[Enum]: ["START", "STOP"]", "Options are: a, b, c.", "in miles"."""

import json
import re
from collections.abc import Sequence

from seal.core.types import Json, Param

_MARK = re.compile(
    r"\[enum\]\s*:\s*|\b(?:options are|here are the options|allowed values|one of)\s*:\s*", re.IGNORECASE
)
_VALUE = re.compile(r"[\w./+-]+(?: [\w./+-]+){0,2}")
_NUMBER = r"-?\d+(?:\.\d+)?"
_RANGE = re.compile(rf"\b(?:from|between) ({_NUMBER})(?: \([^)]*\))? (?:to|and) ({_NUMBER})\b")
_PATTERN = re.compile(r"\bformat(?:ted)?(?: of| as|:)? ?['\"]?((?:YYYY|YY|MM|DD|HH)[A-Za-z/:.-]*[A-Z])")
_FIELDS = re.compile(r"\bin the format of ([a-z]+(?:, [a-z]+)+)")
_LETTERS = re.compile(r"\b(\w+)[ -]letter code|\bin (\w+) letters\b")
_PREFIX = re.compile(
    r"\b(?:start|begin)s? with ['\"]?([^\s'\".,]+)|\ban? ['\"]([^'\"]+)['\"] symbol at the beginning", re.IGNORECASE
)
_UNIT = re.compile(
    r"\bin (m/h|mph|km/h|miles|met(?:er|re)s|kilomet(?:er|re)s|feet|inches|gallons|lit(?:er|re)s|grams|kilograms|pounds"
    r"|USD|EUR|GBP|dollars|euros|cents|milliseconds|seconds|minutes|hours|days|weeks|months|years|bytes|kilobytes"
    r"|megabytes|gigabytes|percent|degrees(?: celsius| fahrenheit)?|celsius|fahrenheit|psi)\b",
    re.IGNORECASE,
)
_PAIR = re.compile(r"'(\w+)' for (\w+)")
_SLASHED = re.compile(r"\(([A-Za-z]\w+(?:/[A-Za-z]\w+)+)\)")
_EITHER = re.compile(r"\beither '([^']+)' or '([^']+)'")
_PREAMBLE = re.compile(r"^.*?\bTool description:\s*", re.DOTALL)  # BFCL's: what the tool's whole class is for


def enum_in_text(description: str) -> tuple[Json, ...]:
    """Allowed values named by a description: a JSON list, or words between commas, after a mark; () without a mark."""
    mark = _MARK.search(description)
    if mark is None:
        return ()
    rest = description[mark.end() :].strip()
    if rest.startswith("["):
        try:
            values, _ = json.JSONDecoder().raw_decode(rest)
        except ValueError:
            return ()
        return tuple(values)
    head = re.split(r"\.(?:\s|$)|[;\n]", rest, maxsplit=1)[0]
    values = [re.sub(r"^(?:and|or)\s+", "", part.strip()).strip("'\"` ") for part in head.split(",")]
    return tuple(values) if len(values) > 1 and all(_VALUE.fullmatch(value) for value in values) else ()


def one_of(values: Sequence[Json]) -> str:
    """Allowed values in words; commas only where a value has a space in it."""
    texts = [str(value) for value in values]
    return f"one of {(', ' if any(' ' in text for text in texts) else ' ').join(texts)}" if texts else ""


def enum_of(param: Param) -> tuple[Json, ...]:
    """Allowed values of a parameter: declared, else told in its description."""
    return param.enum or enum_in_text(param.description)


def range_in_text(description: str) -> tuple[str, str] | None:
    """Bounds of a number: "Priority of the ticket, from 1 to 5", "between 0 (not pressed) and 1 (fully pressed)"."""
    found = _RANGE.search(description)
    return (found[1], found[2]) if found else None


def format_in_text(description: str) -> str:
    """A pattern, the fields of a text, the letters of a code, or the prefix it starts with; "" when none is told."""
    for pattern in (_PATTERN, _FIELDS):
        if found := pattern.search(description):
            return found[1]
    if found := _LETTERS.search(description):
        return f"{found[1]} letter code" if found[1] else f"{found[2]} letters"
    found = _PREFIX.search(description)
    return (found[1] or found[2]) if found else ""


def unit_in_text(description: str) -> str:
    """The unit of a quantity: "The distance to travel in miles." gives miles."""
    found = _UNIT.search(description)
    return found[1] if found else ""


def values_in_text(description: str) -> dict[str, str] | tuple[str, ...]:
    """Values without a mark: "('l' for lines, 'w' for words)" as {word: value}, "(Buy/Sell)", "either 'a' or 'b'"."""
    pairs = _PAIR.findall(description)
    if len(pairs) > 1:
        return {word: value for value, word in pairs}
    slashed, either = _SLASHED.search(description), _EITHER.search(description)
    return tuple(slashed[1].split("/")) if slashed else either.groups() if either else ()


def purpose_in_text(description: str) -> str:
    """The first sentence of what one tool does, without the preamble about the system it belongs to."""
    words = " ".join(_PREAMBLE.sub("", description, count=1).split())
    return re.split(r"(?<=\w[\w)'\"])\.(?:\s|$)", words, maxsplit=1)[0]
