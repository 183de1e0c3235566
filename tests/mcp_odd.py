"""A small real MCP server with names and schemas as servers in the wild have them."""

import json
import sys

QUERY = {
    "type": "object",
    "properties": {"status": {"enum": ["open", "closed"]}, "limit": {"type": "integer"}},
    "required": ["status"],
}
TEXT = {"type": "string"}
SCHEMAS = {
    "mail": {"type": "object", "properties": {"from": TEXT}, "required": ["from"]},
    "get-weather": {"type": "object", "properties": {"city": TEXT}, "required": ["city"]},
    "calendar.respond": {"type": "object", "properties": {"event": TEXT}},
    "github/create_issue": {"type": "object", "properties": {"title": TEXT, "issue-type": TEXT}},
    "3d": {"type": "object", "properties": {"größe": {"type": "integer"}}},
    "list_schedules": {"type": "object", "properties": {"query_model": {"$ref": "#/$defs/Q"}}, "$defs": {"Q": QUERY}},
    "anything": {"type": "object", "properties": {"a": True, "b": None}},
    "javascript": {"type": "object", "properties": {"y": {"pattern": "^(?<y>[0-9]+)$"}, "l": {"pattern": "\\p{L}"}}},
    "nothing": {"type": "object", "properties": None, "required": None},
    "php": {"type": "object", "properties": [], "required": []},
    "dangling": {"type": "object", "properties": {"a": {"$ref": "#/$defs/none"}, "b": {"$ref": "http://x.invalid/y"}}},
    "open": {"type": "object", "additionalProperties": {"type": "integer"}},
    "illegal": {"type": "object", "properties": {"a": {"type": "float"}}},
    "no_object": {"type": "string"},
}
NO_ANSWER = "answers_oddly"
OUTPUT = {"broken_output": {"type": "float"}}


def listed() -> list[dict]:
    tools = [{"name": name, "description": "d", "inputSchema": schema} for name, schema in SCHEMAS.items()]
    tools += [{"name": NO_ANSWER, "title": 5, "annotations": [], "description": None}, {"name": None}, "no tool"]
    return tools + [{"name": n, "inputSchema": {"type": "object"}, "outputSchema": s} for n, s in OUTPUT.items()]


def called(params: dict) -> dict:
    if params["name"] == NO_ANSWER:
        return {"content": "text"}
    said = json.dumps([params["name"], params.get("arguments") or {}], ensure_ascii=False)
    return {"content": [{"type": "text", "text": said}], "structuredContent": {"said": said}}


def answer(method: str, params: dict) -> dict:
    if method == "initialize":
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}}
        return {"result": {"protocolVersion": params.get("protocolVersion"), **about}}
    if method == "tools/list":
        return {"result": {"tools": listed()}}
    if method == "tools/call":
        return {"result": called(params)}
    return {"error": {"code": -32601, "message": "Method not found"}}


def main() -> None:
    """The protocol by hand: the SDK's own server refuses some of these schemas."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            told = answer(asked["method"], asked.get("params") or {})
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **told}), flush=True)


if __name__ == "__main__":
    main()
