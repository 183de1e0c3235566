"""Messages of chat APIs as steps: OpenAI (tool_calls, the older function_call) and Anthropic (tool_use, tool_result).

Every part is checked, since anyone's file comes in here: what is wrong is a ValueError that says where.
"""

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from seal.core.types import Call, CallError, Json, Param, Result, Step, ToolDoc
from seal.tools.error_kinds import error_kind

ROLES = ("system", "developer", "user", "assistant", "tool", "function")
TEXTS = ("text", "input_text", "output_text", "refusal")  # parts of a content that are text


@dataclass(frozen=True, slots=True)
class Conversation:
    """`turns`: the steps after each user message. `docs` is empty where the log tells no schemas.

    `unanswered`: (turn, step, place) of the calls whose result the log does not hold.
    """

    docs: Mapping[str, ToolDoc]
    turns: tuple[tuple[Step, ...], ...]
    unanswered: frozenset[tuple[int, int, int]] = frozenset()


@dataclass(slots=True)
class _Pending:
    """A call that waits for its result; `call` is what was wrong with it where it is none."""

    id: str
    name: str
    call: Call | CallError
    result: Result | None = None


@dataclass(slots=True)
class _Talk:
    """`waiting`: calls by ("id", id) of the last message with it, by ("name", name), and all under ("", "")."""

    turns: list[list[tuple[str, list[_Pending]]]] = field(default_factory=list)
    waiting: dict[tuple[str, str], deque[_Pending]] = field(default_factory=dict)


def conversation(record: Json) -> Conversation:
    """Read {"messages": [...], "tools": [...]} or a bare list of messages; either list may be JSON text.

    Raises ValueError where it is neither, or where anything in it is of the wrong kind.
    """
    record = {"messages": record} if isinstance(record, list) else record
    if not isinstance(record, dict) or record.get("messages") is None:
        raise ValueError("no messages")
    talk = _Talk()
    for i, message in enumerate(_checked(_decoded(record["messages"]), list, "messages")):
        try:
            _read(talk, _checked(_decoded(message), dict, "a message"))
        except ValueError as error:
            raise ValueError(f"message {i}: {error}") from None
    if not talk.turns:
        raise ValueError("no user or assistant message")
    tools = _checked(_decoded(record.get("tools") or record.get("functions") or []), list, "tools")
    docs = {doc.name: doc for doc in (tool_doc(_decoded(tool)) for tool in tools)}
    turns = tuple(tuple(_step(t, s, step) for s, step in enumerate(turn)) for t, turn in enumerate(talk.turns))
    steps = ((t, s, calls) for t, turn in enumerate(talk.turns) for s, (_, calls) in enumerate(turn))
    return Conversation(docs, turns, frozenset((t, s, place) for t, s, calls in steps for place in _unanswered(calls)))


def tool_doc(tool: Json) -> ToolDoc:
    """A tool schema of OpenAI, Anthropic (input_schema) or MCP (inputSchema). Raises ValueError."""
    tool = _checked(tool, dict, "a tool")
    function = _checked(tool.get("function") or tool, dict, "a tool's function")
    name = _name(function, "a tool")
    schema = next((function[key] for key in ("parameters", "input_schema", "inputSchema") if function.get(key)), {})
    schema = _checked(_decoded(schema), dict, f"the schema of {name}")
    required = _checked(schema.get("required") or [], list, f"required of {name}")
    properties = _checked(schema.get("properties") or {}, dict, f"properties of {name}")
    params = tuple(_param(key, spec, key in required, name) for key, spec in properties.items())
    return ToolDoc(name, _words(function.get("description")), params)


def _param(key: str, spec: Json, required: bool, tool: str) -> Param:
    """A union of types, or a schema that is not of one type, accepts anything here."""
    spec = {} if isinstance(spec, bool) else _checked(spec, dict, f"{tool}.{key}")
    kind = spec.get("type")
    enum = tuple(_checked(spec.get("enum") or [], list, f"enum of {tool}.{key}"))
    kind = kind if isinstance(kind, str) else "any"
    return Param(key, kind, required, _words(spec.get("description")), enum, spec.get("default"))


def _read(talk: _Talk, message: Mapping[str, Json]) -> None:
    role = message.get("role")
    if role not in ROLES:
        raise ValueError(f"role {role!r}, not one of {', '.join(ROLES)}")
    content = message.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    if role in ("tool", "function"):
        failed = message.get("is_error") is True or message.get("status") == "error"
        _answer(talk, message.get("tool_call_id"), message.get("name"), text_of(content), failed)
    elif role == "user":
        answers = [part for part in parts if part.get("type") == "tool_result"]
        for part in answers:
            _answer(talk, part.get("tool_use_id"), None, text_of(part.get("content")), part.get("is_error") is True)
        if not answers or text_of(content).strip():
            talk.turns.append([])
    elif role == "assistant":
        calls = [_pending(call) for call in _checked(message.get("tool_calls") or [], list, "tool_calls")]
        calls += [_pending(part) for part in parts if part.get("type") == "tool_use"]
        calls += [_pending(message["function_call"])] if message.get("function_call") else []
        talk.turns = talk.turns or [[]]
        talk.turns[-1].append((text_of(content), calls))
        for one in calls:
            talk.waiting.pop(("id", one.id), None)
        for one in calls:
            for key in (("id", one.id), ("name", one.name), ("", "")):
                talk.waiting.setdefault(key, deque()).append(one)


def _pending(call: Json) -> _Pending:
    call = _checked(call, dict, "a tool call")
    function = _checked(call.get("function") or call, dict, "a tool call's function")
    name, id_ = _name(function, "a tool call"), _words(call.get("id"))
    arguments = function.get("input") if call.get("type") == "tool_use" else function.get("arguments")
    try:
        arguments = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError) as error:
        return _Pending(id_, name, CallError("syntax", f"arguments of {name}: {error}"[:200]))
    arguments = {} if arguments is None else arguments
    if not isinstance(arguments, dict):
        return _Pending(id_, name, CallError("not_object", f"arguments of {name}"))
    return _Pending(id_, name, Call(name, arguments))


def _answer(talk: _Talk, id_: Json, name: Json, text: str, failed: bool) -> None:
    """Give a result to the call with its id, last asked; without an id, to the first that waits, of its name if any.

    A result that no call asked for is passed over: logs are cut.
    """
    keys = [(kind, key) for kind, key in (("id", id_), ("name", name)) if isinstance(key, str) and key]
    queue = talk.waiting.get(keys[0] if keys else ("", ""), deque())
    while queue:
        call = queue.popleft()
        if call.result is None:
            call.result = Result(text, text, error_kind(text) or ("other" if failed else ""))
            return


def _step(turn: int, step: int, output: tuple[str, list[_Pending]]) -> Step:
    text, pending = output
    calls = [(a.call, a.result or Result("", "")) for a in pending if isinstance(a.call, Call)]
    errors = tuple(a.call for a in pending if isinstance(a.call, CallError))
    return Step(turn, step, text, tuple(c for c, _ in calls), errors, tuple(r for _, r in calls))


def _unanswered(pending: list[_Pending]) -> list[int]:
    return [i for i, a in enumerate(a for a in pending if isinstance(a.call, Call)) if a.result is None]


def text_of(content: Json) -> str:
    """A message's content as text: text itself, the text among a list of parts, else its JSON."""
    if isinstance(content, list):
        return "".join(part if isinstance(part, str) else _part(part) for part in content)
    return content if isinstance(content, str) else "" if content is None else json.dumps(content)


def _part(part: Json) -> str:
    if not isinstance(part, dict):
        return "" if part is None else json.dumps(part)
    return _words(part.get("text") or part.get("refusal")) if part.get("type", "text") in TEXTS else ""


def _decoded(value: Json) -> Json:
    """What JSON text holds; anything else as it is. Raises ValueError."""
    return json.loads(value) if isinstance(value, str) else value


def _name(of: Mapping[str, Json], what: str) -> str:
    name = of.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f"{what} has the name {repr(name)[:60]}")
    return name


def _words(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _checked(value: Json, kind: type, what: str) -> Any:
    """The value itself. Raises ValueError where it is not of the kind."""
    if not isinstance(value, kind):
        raise ValueError(f"{what} is no {'object' if kind is dict else 'list'}: {repr(value)[:60]}")
    return value
