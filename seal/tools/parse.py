"""What a policy wrote -> calls and errors, as data. Never raises on text, never runs anything.

Formats: pythonic (BFCL's prompting format), qwen_xml (JSON in <tool_call> tags: Qwen, Hermes, the paper), llama_json,
openai (a `tool_calls` list or a message), words (the nano policy's: `name key=value ; name key=value`, or `done`).

Modes: *strict* follows the official end of turn: an output without a readable call hands back to the user. *lenient*
(an option for training) repairs what is plain and says so, and lets the policy see its syntax error and go on.
Of a key that a JSON object holds twice the last value counts, officially and here; a Python argument twice is no call.
"""

import ast
import json
import re
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Literal

from seal.core.errors import ParamError
from seal.core.types import Call, CallError, Json, Parsed
from seal.tools import repair
from seal.tools.literal import MAX_TEXT, NotACall, call_of, storable, tree_of
from seal.tools.names import NAME, QUOTED, marked, name_again
from seal.tools.schema import Signature, coerce, signature_of

Found = tuple[list[Call], list[CallError]]
OnRepair = repair.OnRepair | None  # called with the name of each repair; None: strict, nothing is repaired
Reader = Callable[[str, Signature, OnRepair], Found]
TYPED = ("pythonic", "words")  # formats that need a schema; in JSON arguments have their names and types
MAX_PIECES = 1000  # calls of one output that are read: a bound on time
END_OF_TURN = "done"  # of the words format
END_OF_THOUGHT = "</think>"  # what stands before it is no part of the answer, as officially
START_OF_THOUGHT = "<think>"
MAX_MARKERS = 3  # ends of thought that are looked behind, and the last
_STAND_IN = "seal-end-of-thought"
_WORD = re.compile(r"[A-Za-z_][\w.\-]*")
_CALL_START = re.compile(r"\A[A-Za-z_][\w.]*+\s*+\(")
_ASIDE = re.compile(r"\A\w++\s++\(")  # "Done (see above).": prose, unless it reads as a call
# An opening tag (or more), up to the next tag that no quotes enclose.
_TAG = re.compile(
    rf"<tool_call>(?:\s*<tool_call>)*+((?:[^\"'\\<]++|{QUOTED}|\\.|[\"'\\]|<(?!/?tool_call>))*+)(</tool_call>)?",
    re.DOTALL,
)
_OWN = ("arguments", "parameters")  # keys of arguments that every reader knows
_OTHERS = ("args", "input", "params", "kwargs")  # an object under one of them is arguments, too
_ENTRY = ("id", "type", "index", "call_id", "status")  # what a server writes beside the name
_ENTRY_TYPES = ("function", "tool_call", "function_call", "tool_use")
_NONE = (None, "", "null", {})


def parse(text: str, format: str, schema: Any = None, mode: Literal["strict", "lenient"] = "strict") -> Parsed:
    """Read one policy output. `schema` (see seal.tools.schema) binds positionals and types bare words.

    Raises ParamError for an unknown format or mode, nothing else.
    """
    if format not in READERS:
        raise ParamError("call format", format, f"known formats: {', '.join(sorted(READERS))}")
    if mode not in ("strict", "lenient"):
        raise ParamError("parse mode", mode, "use strict or lenient")
    repairs: list[str] = []
    if len(text) > MAX_TEXT:
        calls, errors = [], [CallError("syntax", f"longer than {MAX_TEXT} characters")]
    else:
        reader, signature = READERS[format], signature_of(schema) if format in TYPED else {}
        answer = _answer(text, reader, signature, mode == "lenient") if END_OF_THOUGHT in text else text
        calls, errors = reader(answer, signature, repairs.append if mode == "lenient" else None)
    ends = not calls and (not errors or (mode == "strict" and format != "words"))
    return Parsed(tuple(calls), tuple(errors), ends, tuple(dict.fromkeys(repairs)))


def _answer(text: str, reader: Reader, signature: Signature, lenient: bool) -> str:
    """What follows the thought: the longest end of the text whose own ends of thought are all data of its calls."""
    ends = [] if text.lstrip().startswith(START_OF_THOUGHT) else [text]
    while END_OF_THOUGHT in text and len(ends) <= MAX_MARKERS:
        text = text.partition(END_OF_THOUGHT)[2]
        ends.append(text)
    for end in ends:
        markers, before = end.count(END_OF_THOUGHT), end.partition(END_OF_THOUGHT)[0]
        if not markers or (reader is _openai and _is_json(end)):  # of a message the content, too, is data
            return end
        if any(sign in before for sign in "({="):
            shown = {
                tool: {n.replace(END_OF_THOUGHT, _STAND_IN): t for n, t in p.items()} for tool, p in signature.items()
            }
            calls, _ = reader(end.replace(END_OF_THOUGHT, _STAND_IN), shown, _heedless if lenient else None)
            if json.dumps([dict(call.arguments) for call in calls]).count(_STAND_IN) == markers:
                return end
    return text.rpartition(END_OF_THOUGHT)[2]


def _heedless(repair_name: str) -> None:
    """For a look that may come to nothing."""


def _pythonic(text: str, signature: Signature, on_repair: OnRepair) -> Found:
    body = text.strip("` \t\r\n")
    found = _call_list(body, signature, on_repair)
    if on_repair is None or found[0]:
        return found
    for mend, name in (
        (repair.escaped_lines, repair.RAW_TEXT),
        (repair.calls_on_lines, repair.SEPARATORS),
        (repair.call_list_in, repair.SURROUNDING),
    ):
        inner = mend(body)
        if inner and inner != body and (again := _call_list(inner, signature, on_repair))[0]:
            on_repair(name)
            return again
    return found


def _call_list(body: str, signature: Signature, on_repair: OnRepair) -> Found:
    if not body.startswith("[") and not _CALL_START.match(body) and body.partition("(")[0].rstrip() not in signature:
        return [], []
    # The official decoder adds what is missing of the outer brackets.
    whole = f"{'' if body.startswith('[') else '['}{body}{'' if body.endswith(']') else ']'}"
    found = _calls_in(whole, signature, {}, on_repair is None)
    if found[1] and _ASIDE.match(body) and not found[0]:
        return [], []
    if found[1] or not whole.isascii():
        text, names = marked(whole, signature)
        again = _calls_in(text, signature, names, on_repair is None) if names else found
        if len(again[1]) <= len(found[1]):
            return again
    return found


def _calls_in(text: str, signature: Signature, names: dict[str, str], strict: bool) -> Found:
    try:
        tree = tree_of(text)
    except NotACall as error:
        return [], [CallError(error.kind, str(error))]
    if not name_again(tree, names):
        return [], [CallError("syntax", "a name that is none")]
    nodes = tree.elts if isinstance(tree, ast.List | ast.Tuple | ast.Set) else [tree]
    if strict and not all(isinstance(node, ast.Call) for node in nodes):  # then officially nothing runs
        return [], [CallError("syntax", "a list of other things than calls")]
    return _collect(nodes, lambda node: call_of(node, signature, repair.CONSTANTS))


def _qwen_xml(text: str, signature: Signature, on_repair: OnRepair) -> Found:
    values: list[Json] = []
    for match in islice(_TAG.finditer(text), MAX_PIECES + 1):
        try:
            values += _tagged(match[1], bool(match[2]), on_repair)
        except NotACall as error:
            values.append(error)
    return _collect(values, lambda value: _call_of_json(value, on_repair))


def _tagged(body: str, closed: bool, on_repair: OnRepair) -> list[Json]:
    """The values between two tags: strictly one."""
    if on_repair is None:
        if not closed:
            raise NotACall("truncated", "a <tool_call> is never closed")
        return [repair.read_json(body)]
    try:
        values = repair.sequence(body, on_repair)
    except NotACall:
        values = [repair.json_value(body, on_repair, closed)]
    flat = [inner for value in values for inner in (value if isinstance(value, list) else [value])]
    if not flat:
        raise NotACall("syntax", repair.NO_JSON)
    if len(flat) > 1:
        on_repair(repair.SEPARATORS)
    if not closed:
        on_repair(repair.UNCLOSED_TAG)
    return flat


def _llama_json(text: str, signature: Signature, on_repair: OnRepair) -> Found:
    body = text.strip().removeprefix("<|python_tag|>").removesuffix("<|eom_id|>").removesuffix("<|eot_id|>").strip()
    if on_repair and not body.startswith(("{", "[")) and "<|python_tag|>" in body:
        body = body.partition("<|python_tag|>")[2].strip()
        on_repair(repair.SURROUNDING)
    if not body.startswith(("{", "[")):
        return [], []
    try:
        values = repair.sequence(body, on_repair)
    except NotACall as error:
        try:
            values = [repair.json_value(body, on_repair, closed=False)] if on_repair else []
        except NotACall:
            values = []
        if not values:
            return [], [CallError(error.kind, str(error))]
    pieces = [piece for value in values for piece in (value if isinstance(value, list) else [value])]
    return _collect(pieces, lambda value: _call_of_json(value, on_repair))


def _openai(text: str, signature: Signature, on_repair: OnRepair) -> Found:
    body = text.strip()
    if not body.startswith(("{", "[")):
        return [], []
    try:
        value = _json(body, on_repair)
    except NotACall as error:
        return [], [CallError(error.kind, str(error))]
    if isinstance(value, dict):
        legacy = value.get("function_call")
        own = (
            [value] if ("function" in value or "name" in value) and "role" not in value else [legacy] if legacy else []
        )
        value = value.get("tool_calls") or own

    def read(entry: Json) -> Call:
        return _call_of_json(entry.get("function", entry) if isinstance(entry, dict) else entry, on_repair)

    return _collect(value if isinstance(value, list) else [value], read)


def _words(text: str, signature: Signature, on_repair: OnRepair) -> Found:
    if text.strip() == END_OF_TURN:
        return [], []

    def read(part: str) -> Call:
        name, *pairs = part.split() or [""]
        if not _WORD.fullmatch(name) and name not in signature:
            raise NotACall("syntax", f"no tool name in {part.strip()[:60]!r}")
        types, arguments = signature.get(name, {}), {}
        for pair in pairs:
            key, equals, value = pair.partition("=")
            if not (key and equals and value):
                raise NotACall("syntax", f"{pair[:40]!r} is not key=value")
            if key in arguments:
                raise NotACall("duplicate_argument", f"{name} got {key} twice")
            arguments[key] = coerce(value, types.get(key, ""))
        return Call(name, storable(arguments))

    return _collect(text.split(" ; "), read)


READERS: dict[str, Reader] = {
    "pythonic": _pythonic,
    "qwen_xml": _qwen_xml,
    "llama_json": _llama_json,
    "openai": _openai,
    "words": _words,
}


def format_calls(calls: Sequence[Call], format: str) -> str:
    """The text that `parse` reads back as these calls; none: the format's end of turn."""
    if format == "pythonic":
        return f"[{', '.join(map(call_text, calls))}]"
    if format == "words":
        parts = (" ".join([c.name, *(f"{k}={_word(v)}" for k, v in c.arguments.items())]) for c in calls)
        return " ; ".join(parts) or END_OF_TURN
    if format == "llama_json":
        parts = ({"name": c.name, "parameters": dict(c.arguments)} for c in calls)
        return "; ".join(json.dumps(part, ensure_ascii=False) for part in parts)
    if format == "qwen_xml":
        # a tag inside a text must not end the call
        parts = (json.dumps({"name": c.name, "arguments": dict(c.arguments)}, ensure_ascii=False) for c in calls)
        bodies = (re.sub(r"<(?=/?tool_call>)", r"\\u003c", part) for part in parts)
        return "\n".join(f"<tool_call>\n{body}\n</tool_call>" for body in bodies)
    if format == "openai":
        functions = ({"name": c.name, "arguments": json.dumps(dict(c.arguments))} for c in calls)
        return json.dumps([{"type": "function", "function": function} for function in functions]) if calls else ""
    raise ParamError("call format", format, f"known formats: {', '.join(sorted(READERS))}")


def call_text(call: Call) -> str:
    """One call as Python writes it: `tool(name='value')`."""
    return f"{call.name}({', '.join(_pair(name, value) for name, value in call.arguments.items())})"


def _pair(name: str, value: Json) -> str:
    """`reply-to='x'` and `from='x'` as people write them; what is no single word as Python has it."""
    return f"{name}={value!r}" if NAME.fullmatch(name) else f"**{{{name!r}: {value!r}}}"


def _word(value: Json) -> str:
    """A bare word; what is none (a text with spaces, a list) as JSON without spaces."""
    if isinstance(value, str) and value.split() == [value] and not value.startswith('"'):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return json.dumps(value, separators=(",", ":")).replace(" ", "\\u0020")


def _collect(pieces: Any, read: Callable[[Any], Call]) -> Found:
    """Every piece on its own: good calls are kept beside the errors of bad ones. Stops at MAX_PIECES."""
    calls, errors = [], []
    for number, piece in enumerate(pieces):
        if number == MAX_PIECES:
            errors.append(CallError("syntax", f"more than {MAX_PIECES} calls"))
            break
        try:
            calls.append(read(piece))
        except NotACall as error:
            errors.append(CallError(error.kind, str(error)))
    return calls, errors


def _json(text: str, on_repair: OnRepair) -> Json:
    return repair.json_value(text, on_repair) if on_repair else repair.read_json(text)


def _call_of_json(value: Json | NotACall, on_repair: OnRepair) -> Call:
    if isinstance(value, NotACall):
        raise value
    if not isinstance(value, dict):
        raise NotACall("not_object", f"a call must be an object, not {type(value).__name__}")
    name = value.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise NotACall("bad_name", f"{str(name)[:60]!r} is no tool name")
    arguments = _arguments(value, on_repair)
    if isinstance(arguments, str):
        arguments = _json(arguments, on_repair)
    if not isinstance(arguments, dict):
        raise NotACall("not_object", f"arguments must be an object, not {type(arguments).__name__}")
    if not all(isinstance(key, str) for key in arguments):
        raise NotACall("not_object", "argument names must be text")
    return Call(name, storable(arguments))


def _arguments(value: dict[str, Json], on_repair: OnRepair) -> Json:
    """What a call gives its tool, wherever it stands; elsewhere than it should is an error, or mended."""
    keys = [k for k in _OWN if k in value]
    keys += [key for key in _OTHERS if isinstance(inner := value.get(key), dict) or _object_as_text(inner)]
    filled = [key for key in keys if value[key] not in _NONE]
    if len(filled) > 1:
        raise NotACall("misplaced", f"arguments under {filled[0]} and under {filled[1]}")
    if filled and filled[0] in _OWN:
        return value[filled[0]]
    aside = _ENTRY if keys or value.get("type") in _ENTRY_TYPES else ()
    flat = {key: inner for key, inner in value.items() if key != "name" and key not in (*keys, *aside)}
    if not filled and not flat:
        return {}
    if on_repair is None:
        raise NotACall("misplaced", f"arguments under {filled[0] if filled else str(next(iter(flat)))[:60]}")
    on_repair(repair.ELSEWHERE)
    return value[filled[0]] if filled else flat


def _is_json(text: str) -> bool:
    try:
        return isinstance(repair.read_json(text), dict | list)
    except NotACall:
        return False


def _object_as_text(value: Json) -> bool:
    return isinstance(value, str) and value.lstrip().startswith("{")
