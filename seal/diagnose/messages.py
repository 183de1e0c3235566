"""Messages of chat APIs as steps: OpenAI (tool_calls, the older function_call) and Anthropic (tool_use, tool_result).

Every slot is checked, since anyone's file comes in here: what is wrong is a ValueError that says where.
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
class _Asked:
    """A call that waits for its result; `call` is what was wrong with it where it is none."""

    id: str
    name: str
    call: Call | CallError
    result: Result | None = None


@dataclass(slots=True)
class _Talk:
    """`waiting`: calls by ("id", id) of the last message with it, by ("name", name), and all under ("", "")."""

    turns: list[list[tuple[str, list[_Asked]]]] = field(default_factory=list)
    waiting: dict[tuple[str, str], deque[_Asked]] = field(default_factory=dict)


def conversation(record: Json) -> Conversation:
    """Read {"messages": [...], "tools": [...]} or a bare list of messages; either list may be JSON text.

    Raises ValueError where it is neither, or where anything in it is of the wrong kind.
    """
    record = {"messages": record} if isinstance(record, list) else record
    if not isinstance(record, dict) or record.get("messages") is None:
        raise ValueError("no messages")
    talk = _Talk()
    for i, message in enumerate(_list(_decoded(record["messages"]), "messages")):
        try:
            _read(talk, _dict(_decoded(message), "a message"))
        except ValueError as error:
            raise ValueError(f"message {i}: {error}") from None
    if not talk.turns:
        raise ValueError("no user or assistant message")
    tools = _list(_decoded(record.get("tools") or record.get("functions") or []), "tools")
    docs = {doc.name: doc for doc in (tool_doc(_decoded(tool)) for tool in tools)}
    turns = tuple(tuple(_step(t, s, step) for s, step in enumerate(turn)) for t, turn in enumerate(talk.turns))
    silent = ((t, s, c) for t, turn in enumerate(talk.turns) for s, step in enumerate(turn) for c in _silent(step[1]))
    return Conversation(docs, turns, frozenset(silent))


def tool_doc(tool: Json) -> ToolDoc:
    """A tool schema of OpenAI, Anthropic (input_schema) or MCP (inputSchema). Raises ValueError."""
    tool = _dict(tool, "a tool")
    function = _dict(tool.get("function") or tool, "a tool's function")
    name = _name(function, "a tool")
    schema = next((function[key] for key in ("parameters", "input_schema", "inputSchema") if function.get(key)), {})
    schema = _dict(_decoded(schema), f"the schema of {name}")
    required = _list(schema.get("required") or [], f"required of {name}")
    properties = _dict(schema.get("properties") or {}, f"properties of {name}")
    params = tuple(_param(key, spec, key in required, name) for key, spec in properties.items())
    return ToolDoc(name, _words(function.get("description")), params)


def _param(key: str, spec: Json, required: bool, tool: str) -> Param:
    """A union of types, or a schema that is not of one type, accepts anything here."""
    spec = {} if isinstance(spec, bool) else _dict(spec, f"{tool}.{key}")
    kind = spec.get("type")
    enum = tuple(_list(spec.get("enum") or [], f"enum of {tool}.{key}"))
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
        asked = [_asked(call) for call in _list(message.get("tool_calls") or [], "tool_calls")]
        asked += [_asked(part) for part in parts if part.get("type") == "tool_use"]
        asked += [_asked(message["function_call"])] if message.get("function_call") else []
        talk.turns = talk.turns or [[]]
        talk.turns[-1].append((text_of(content), asked))
        for one in asked:
            talk.waiting.pop(("id", one.id), None)
        for one in asked:
            for key in (("id", one.id), ("name", one.name), ("", "")):
                talk.waiting.setdefault(key, deque()).append(one)


def _asked(call: Json) -> _Asked:
    call = _dict(call, "a tool call")
    function = _dict(call.get("function") or call, "a tool call's function")
    name, id_ = _name(function, "a tool call"), _words(call.get("id"))
    arguments = function.get("input") if call.get("type") == "tool_use" else function.get("arguments")
    try:
        arguments = json.loads(arguments or "{}") if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError) as error:
        return _Asked(id_, name, CallError("syntax", f"arguments of {name}: {error}"[:200]))
    arguments = {} if arguments is None else arguments
    if not isinstance(arguments, dict):
        return _Asked(id_, name, CallError("not_object", f"arguments of {name}"))
    return _Asked(id_, name, Call(name, arguments))


def _answer(talk: _Talk, id_: Json, name: Json, text: str, failed: bool) -> None:
    """Give a result to the call with its id, last asked; without an id, to the first that waits, of its name if any.

    A result that no call asked for is passed over: logs are cut.
    """
    key = (
        ("id", id_) if isinstance(id_, str) and id_ else ("name", name) if isinstance(name, str) and name else ("", "")
    )
    queue = talk.waiting.get(key, deque())
    while queue:
        asked = queue.popleft()
        if asked.result is None:
            asked.result = Result(text, text, error_kind(text) or ("other" if failed else ""))
            return


def _step(turn: int, step: int, said: tuple[str, list[_Asked]]) -> Step:
    text, asked = said
    calls = [(a.call, a.result or Result("", "")) for a in asked if isinstance(a.call, Call)]
    errors = tuple(a.call for a in asked if isinstance(a.call, CallError))
    return Step(turn, step, text, tuple(c for c, _ in calls), errors, tuple(r for _, r in calls))


def _silent(asked: list[_Asked]) -> list[int]:
    return [i for i, a in enumerate(a for a in asked if isinstance(a.call, Call)) if a.result is None]


def text_of(content: Json) -> str:
    """A message's content as text: text itself, the text among a list of parts, else its JSON."""
    if isinstance(content, list):
        texts = [part if isinstance(part, str) else _part(part) for part in content]
        return "".join(texts)
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
        raise ValueError(f"{what} has the name {_short(name)}")
    return name


def _words(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _dict(value: Json, what: str) -> Mapping[str, Json]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is no object: {_short(value)}")
    return value


def _list(value: Json, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{what} is no list: {_short(value)}")
    return value


def _short(value: Json) -> str:
    return repr(value)[:60]
