"""Error or not, and of which kind, read from a tool result's text alone: for logs whose executor did not say.

Shapes seen in the wild: {"error": text or code}, a bare "Error ..." string, a Python-repr list of such, a traceback.
False flags, None, {} and texts that merely mention errors are normal results.
"""

import ast
import json
import re
from collections.abc import Mapping
from contextlib import suppress

from seal.core.types import Json

MAX_LITERAL = 20_000  # characters of a Python literal that are looked into; JSON of any length is
_ERROR_KEYS = ("error", "errors", "exception")
_HINT = re.compile("error|exception|traceback", re.IGNORECASE)  # in every shape: most results need no look inside
# Of what is no literal or a cut one: what it begins with. A key with nothing to complain of is none, nor is a measure.
_NOTHING = r"""['"]\s*:\s*(?:none|null|false|0(?:\.0+)?|''|""|\{\s*\}|\[\s*\])\s*(?:[,}]|$)"""
_BARE = re.compile(
    rf"^\W*(?:(?:(?:mcp )?error|errors(?=['\"])|exception|traceback)\b(?!{_NOTHING})"
    r"|(?-i:[A-Z]\w*(?:Error|Exception)):(?!\s*[-+.\d]+\s*$))",
    re.IGNORECASE,
)
_PATTERNS: Mapping[str, str] = {  # the first that matches counts
    "unknown_tool": r"name '\w+' is not defined|unknown (tool|function)|no such (tool|function)",
    "missing_argument": r"missing\b.*(argument|parameter|field)"
    r"|(argument|parameter|field)\b.*\brequired|^error missing",
    "unexpected_argument": r"unexpected\b.*(argument|parameter|field)|additional propert|^error unexpected",
    "wrong_type": r"not supported between|invalid type|type ?error"
    r"|must be (an? )?(str|int|float|num|bool|list|array|obj)",
    "timeout": r"time[d -]?\s?out",
    "permission": r"permission|denied|unauthori[sz]ed|forbidden|not authenticated|log(ged)? ?in\b"
    r"|invalid.* token|token (expired|not)|\b40[13]\b",
    "not_found": r"not found|no such|not registered|does(n't| not) exist|\b404\b",
    "precondition": r"\b(first|before|already|refused|closed|exists|insufficient)\b"
    r"|\bnot (yet|open|active|started|pending|running)\b",
    "invalid_value": r"invalid|must be|not (a )?valid|out of range|allowed values|one of",
}
_KINDS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _PATTERNS.items()}


def error_kind(text: str) -> str:
    """One of seal.core.types.ERROR_KINDS, or "" for a normal result."""
    message = error_text(text)
    if message is None:
        return ""
    return next((kind for kind, pattern in _KINDS.items() if pattern.search(message)), "other")


def error_text(text: str) -> str | None:
    """What a result complains of; None for a normal result."""
    if not _HINT.search(text):
        return None
    value = _literal(text)
    if value is None:
        return text if _BARE.match(text) else None
    try:
        return _complaint(value)
    except RecursionError:  # what it complains of is nested too deep to be written
        return text


def _complaint(value: Json) -> str | None:
    """The first one of a dict, or of dicts and texts in a list, in lists of them too."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict) and (key := next((key for key in _ERROR_KEYS if item.get(key)), "")):
            return str(item[key])
        if isinstance(item, str) and _BARE.match(item):
            return item
        if isinstance(item, list):
            waiting += reversed(item)
    return None


def _literal(text: str) -> Json:
    """The JSON or Python literal a text is, or None. Literals only: nothing is evaluated."""
    text = text.strip()
    if text[:1] not in ("{", "["):
        return None
    for read in (json.loads, ast.literal_eval):
        if read is json.loads or len(text) <= MAX_LITERAL:
            with suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                return read(text)
    return None
