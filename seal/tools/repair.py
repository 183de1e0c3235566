"""What lenient parsing mends, and how it tells: each repair has a name that ends up in `Parsed.repairs`.

A repair never invents content: it drops what stands around a call, reads Python where JSON was due (or the reverse),
and closes brackets where the writer has closed the call otherwise. A text that was cut off stays an error.
"""

import json
import re
from collections.abc import Callable
from types import MappingProxyType

from seal.core.types import Json
from seal.tools.literal import NotACall, literal, tree_of
from seal.tools.names import NAME, QUOTED

OnRepair = Callable[[str], None]  # called with the name of a repair

SURROUNDING = "surrounding_text"  # prose or a code fence around a list of calls
SEPARATORS = "separators"  # calls on lines of their own instead of in a list, several objects in one tag
RAW_TEXT = "raw_text"  # newlines and tabs inside a quoted text that should have been escaped
PYTHON_LITERAL = "python_literal"  # a Python dictionary where JSON was due
MISSING_BRACE = "missing_brace"  # JSON that lacks its last closing brackets inside a closed tag
UNCLOSED_TAG = "unclosed_tag"  # a complete call whose <tool_call> is never closed
ELSEWHERE = "arguments_elsewhere"  # under `args`, `input` and the like, or beside the name

CONSTANTS = MappingProxyType({"true": True, "false": False, "null": None})
_LIST = re.compile(rf"{QUOTED}|\\.|(\[\s*+{NAME.pattern}+\s*+\()|(\)\s*+\])", re.DOTALL)  # where a list begins, ends
_QUOTED = re.compile(rf"\\.|{QUOTED}", re.DOTALL)
_LINE = re.compile(r"(\\.)|[\r\n]", re.DOTALL)
_CALL_LINE = re.compile(rf"\A{NAME.pattern}+\(.*\)[,;]?")
_GAP = re.compile(r"[\s,;]*+")
_CLOSER = MappingProxyType({"{": "}", "[": "]"})
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*("?)', re.DOTALL)  # closed or not, so that nothing is read twice
NO_JSON = "not JSON"  # what an error says, whatever words the reader has for it
MAX_MISSING = 4  # closing brackets


def call_list_in(text: str) -> str | None:
    """The list of calls that prose surrounds: from the first `[name(` to the last `)]`; None without one."""
    found = [match for match in _LIST.finditer(text) if match[1] or match[2]]
    start = next((match.start() for match in found if match[1]), None)
    return text[start : found[-1].end()] if start is not None and found[-1][2] else None


def escaped_lines(text: str) -> str:
    """The text with the newlines inside its quotes escaped."""
    return _QUOTED.sub(lambda quoted: _LINE.sub(lambda line: line[1] or repr(line[0])[1:-1], quoted[0]), text)


def sequence(text: str, on_repair: OnRepair | None = None) -> list[Json]:
    """JSON values that follow each other, between them space, commas and semicolons. Raises NotACall(syntax)."""
    try:
        return _sequence(text, _STRICT)
    except NotACall:
        if not on_repair:
            raise
    values = _sequence(text, _LOOSE)
    on_repair(RAW_TEXT)
    return values


def _sequence(text: str, decoder: json.JSONDecoder) -> list[Json]:
    values, at = [], _GAP.match(text).end()
    try:
        while at < len(text):
            value, at = decoder.raw_decode(text, at)
            values.append(value)
            at = _GAP.match(text, at).end()
    except NotACall:
        raise
    except (ValueError, RecursionError):
        raise NotACall("syntax", NO_JSON) from None
    return values


def calls_on_lines(text: str) -> str | None:
    """A list of the calls that stand on lines of their own; None where any other line is among them."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) < 2 or not all(_CALL_LINE.fullmatch(line) for line in lines):
        return None
    return f"[{', '.join(line.rstrip(',;') for line in lines)}]"


def json_value(text: str, on_repair: OnRepair, closed: bool = True) -> Json:
    """JSON as lenient readers of calls take it. Raises NotACall. `closed`: the writer has ended the call otherwise."""
    try:
        return read_json(text)
    except NotACall as error:
        first = error
    try:
        value = read_json(text, _LOOSE)
        on_repair(RAW_TEXT)
        return value
    except NotACall:
        pass
    if closed and (whole := _with_closers(text)) is not None:
        try:
            value = read_json(whole, _LOOSE)
            on_repair(MISSING_BRACE)
            return value
        except NotACall:
            pass
    try:
        value = literal(tree_of(text), CONSTANTS)
    except NotACall:
        raise first from None
    on_repair(PYTHON_LITERAL)
    return value


def read_json(text: str, decoder: json.JSONDecoder | None = None) -> Json:
    """Strict JSON, without NaN and Infinity. Raises NotACall(syntax)."""
    try:
        return (decoder or _STRICT).decode(text)
    except NotACall:
        raise
    except (ValueError, RecursionError):
        raise NotACall("syntax", NO_JSON) from None


def _no_constant(name: str) -> Json:
    raise NotACall("syntax", f"{name} is no JSON value")


_STRICT = json.JSONDecoder(parse_constant=_no_constant)
_LOOSE = json.JSONDecoder(parse_constant=_no_constant, strict=False)


def _with_closers(text: str) -> str | None:
    """The text with the brackets that it leaves open closed; None where it ends inside a string or is otherwise odd."""
    if any(not match[1] for match in _STRING.finditer(text)):
        return None
    open_: list[str] = []
    for char in _STRING.sub("", text):
        if char in _CLOSER:
            open_.append(_CLOSER[char])
        elif char in "}]" and (not open_ or open_.pop() != char):
            return None
    return text + "".join(reversed(open_)) if 0 < len(open_) <= MAX_MISSING else None
