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
from typing import Any, Literal

from seal.core.errors import ParamError
from seal.core.types import Call, CallError, Json, Parsed
from seal.tools import repair
from seal.tools.literal import MAX_TEXT, NotACall, call_of, storable, tree_of
from seal.tools.schema import Signature, coerce, signature_of

Found = tuple[list[Call], list[CallError]]
OnRepair = repair.OnRepair | None  # called with the name of each repair; None: strict, nothing is repaired
MAX_PIECES = 1000  # calls of one output that are read: a bound on time
END_OF_TURN = "done"  # of the words format
END_OF_THOUGHT = "</think>"  # what stands before it is no part of the answer, as officially
_NAME = re.compile(r"[A-Za-z_][\w.\-]*")
_CALL_START = re.compile(r"[A-Za-z_][\w.]*\s*\(")
_ASIDE = re.compile(r"\w+\s+\(")  # "Done (see above).": prose, unless it reads as a call
_GAP = re.compile(r"[\s;]*")
_TAG = re.compile(r"<tool_call>(.*?)(</tool_call>|(?=<tool_call>)|\Z)", re.DOTALL)


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
        answer = text.rpartition(END_OF_THOUGHT)[2]
        calls, errors = READERS[format](answer, signature_of(schema), repairs.append if mode == "lenient" else None)
    ends = not calls and (not errors or (mode == "strict" and format != "words"))
    return Parsed(tuple(calls), tuple(errors), ends, tuple(dict.fromkeys(repairs)))


def _pythonic(text: str, signature: Signature, on_repair: OnRepair) -> Found:
    body = text.strip("` \t\r\n")
    found = _call_list(body, signature, on_repair)
    if on_repair is None or found[0]:
        return found
    for mend, name in ((repair.calls_on_lines, repair.SEPARATORS), (repair.call_list_in, repair.SURROUNDING)):
        inner = mend(body)
        if inner and inner != body and (again := _call_list(inner, signature, on_repair))[0]:
            on_repair(name)
            return again
    return found


def _call_list(body: str, signature: Signature, on_repair: OnRepair) -> Found:
    if not body.startswith("[") and not _CALL_START.match(body):
        return [], []
    # The official decoder adds what is missing of the outer brackets.
    whole = f"{'' if body.startswith('[') else '['}{body}{'' if body.endswith(']') else ']'}"
    try:
        tree = tree_of(whole)
    except NotACall as error:
        if _ASIDE.match(body):
            return [], []
        return [], [CallError(error.kind, str(error))]
    nodes = tree.elts if isinstance(tree, ast.List | ast.Tuple | ast.Set) else [tree]
    if on_repair is None and not all(isinstance(node, ast.Call) for node in nodes):  # then officially nothing runs
        return [], [CallError("syntax", "a list of other things than calls")]
    found = _collect(nodes, lambda node: call_of(node, signature))
    if on_repair and found[1]:
        again = _collect(nodes, lambda node: call_of(node, signature, repair.CONSTANTS))
        if len(again[1]) < len(found[1]):
            on_repair(repair.JSON_NAMES)
            return again
    return found


def _qwen_xml(text: str, signature: Signature, on_repair: OnRepair) -> Found:
    def read(match: re.Match) -> Call:
        if match[2]:
            return _call_of_json(_json(match[1], on_repair), ("arguments", "parameters"), on_repair)
        if not on_repair:
            raise NotACall("truncated", "a <tool_call> is never closed")
        value = repair.json_value(match[1], on_repair, closed=False)
        call = _call_of_json(value, ("arguments", "parameters"), on_repair)
        on_repair(repair.UNCLOSED_TAG)
        return call

    return _collect(_TAG.finditer(text), read)


def _llama_json(text: str, signature: Signature, on_repair: OnRepair) -> Found:
    body = text.strip().removeprefix("<|python_tag|>").removesuffix("<|eom_id|>").removesuffix("<|eot_id|>").strip()
    if not body.startswith(("{", "[")):
        return [], []
    decoder, pieces, at = json.JSONDecoder(parse_constant=repair.no_constant), [], 0
    try:
        while at < len(body):
            value, at = decoder.raw_decode(body, at)
            pieces += value if isinstance(value, list) else [value]
            at = _GAP.match(body, at).end()
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, NotACall) else repair.NO_JSON
        if on_repair is None:
            return [], [CallError("syntax", reason)]
        try:
            value = repair.json_value(body, on_repair, closed=False)
        except NotACall:
            return [], [CallError("syntax", reason)]
        pieces = value if isinstance(value, list) else [value]
    return _collect(pieces, lambda value: _call_of_json(value, ("parameters", "arguments"), on_repair))


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
        own = [value] if "function" in value or "name" in value else [legacy] if legacy else []
        value = value.get("tool_calls") or own

    def read(entry: Json) -> Call:
        function = entry.get("function", entry) if isinstance(entry, dict) else entry
        if isinstance(function, dict) and isinstance(function.get("arguments"), str):
            function = function | {"arguments": _json(function["arguments"] or "{}", on_repair)}
        return _call_of_json(function, ("arguments",), on_repair)

    return _collect(value if isinstance(value, list) else [value], read)


def _words(text: str, signature: Signature, on_repair: OnRepair) -> Found:
    if text.strip() == END_OF_TURN:
        return [], []

    def read(part: str) -> Call:
        name, *pairs = part.split() or [""]
        if not _NAME.fullmatch(name):
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


READERS: dict[str, Callable[[str, Signature, OnRepair], Found]] = {
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
    return f"{call.name}({', '.join(f'{name}={value!r}' for name, value in call.arguments.items())})"


def _word(value: Json) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


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


def _call_of_json(value: Json, keys: tuple[str, ...], on_repair: OnRepair) -> Call:
    if not isinstance(value, dict):
        raise NotACall("not_object", f"a call must be an object, not {type(value).__name__}")
    name = value.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise NotACall("bad_name", f"{str(name)[:60]!r} is no tool name")
    arguments = next((value[key] for key in keys if key in value), {})
    if on_repair and isinstance(arguments, str):
        arguments = repair.json_value(arguments or "{}", on_repair)
        on_repair(repair.ARGUMENTS_AS_TEXT)
    if not isinstance(arguments, dict):
        raise NotACall("not_object", f"arguments must be an object, not {type(arguments).__name__}")
    if not all(isinstance(key, str) for key in arguments):
        raise NotACall("not_object", "argument names must be text")
    return Call(name, storable(arguments))
