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

OnRepair = Callable[[str], None]  # called with the name of a repair

SURROUNDING = "surrounding_text"  # prose or a code fence around a list of calls
SEPARATORS = "separators"  # calls on lines of their own instead of in a list
JSON_NAMES = "json_names"  # true, false, null among Python literals
PYTHON_LITERAL = "python_literal"  # a Python dictionary where JSON was due
MISSING_BRACE = "missing_brace"  # JSON that lacks its last closing brackets inside a closed tag
UNCLOSED_TAG = "unclosed_tag"  # a complete call whose <tool_call> is never closed
ARGUMENTS_AS_TEXT = "arguments_as_text"  # an object of arguments written as JSON inside a text

CONSTANTS = MappingProxyType({"true": True, "false": False, "null": None})
_LIST_START = re.compile(r"\[\s*[A-Za-z_]\w*\s*\(")
_LIST_END = re.compile(r"\)\s*\]")
_CALL_LINE = re.compile(r"[A-Za-z_]\w*\(.*\)[,;]?")
_CLOSER = MappingProxyType({"{": "}", "[": "]"})
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*("?)', re.DOTALL)  # closed or not, so that nothing is read twice
NO_JSON = "not JSON"  # what an error says, whatever words the reader has for it
MAX_MISSING = 4  # closing brackets


def call_list_in(text: str) -> str | None:
    """The list of calls that prose surrounds: from the first `[name(` to the last `)]`; None without one."""
    start = _LIST_START.search(text)
    ends = [match.end() for match in _LIST_END.finditer(text)]
    return text[start.start() : ends[-1]] if start and ends and ends[-1] > start.end() else None


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
    if closed and (whole := _with_closers(text)) is not None:
        try:
            value = read_json(whole)
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


def read_json(text: str) -> Json:
    """Strict JSON, without NaN and Infinity. Raises NotACall(syntax)."""
    try:
        return json.loads(text, parse_constant=no_constant)
    except NotACall:
        raise
    except (ValueError, RecursionError):
        raise NotACall("syntax", NO_JSON) from None


def no_constant(name: str) -> Json:
    raise NotACall("syntax", f"{name} is no JSON value")


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
