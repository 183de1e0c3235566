"""Evolved docs as OpenAI tools and as an MCP list."""

import json

import pytest

from seal.core.errors import ParamError
from seal.core.types import Param, ToolDoc
from seal.interface.export import mcp_tools, openai_tools
from seal.interface.state import InterfaceState, Item
from seal.tools.docs import tool_doc

DOCS = (
    ToolDoc(
        "drive_start",
        "Starts it.",
        (
            Param("mode", description='The mode. [Enum]: ["START", "STOP"]'),
            Param("doors", "array", required=False, description='[Enum]: ["left", "right"]'),
            Param("speed", "float", required=False, default=1.5),
            Param("extra", "any", required=False),
        ),
    ),
)
STATE = InterfaceState(
    (
        Item("needs", "drive_start", "docs", "after unlock", "", ""),
        Item("format", "drive_start.mode", "docs", "starts S", "", ""),
    )
)


def test_openai_schema_carries_notes_and_allowed_values():
    (tool,) = openai_tools(DOCS, STATE)
    assert tool["type"] == "function" and tool["function"]["name"] == "drive_start"
    assert tool["function"]["description"] == "Starts it. (after unlock)"
    schema = tool["function"]["parameters"]
    assert schema["type"] == "object" and schema["required"] == ["mode"]
    assert schema["properties"]["mode"]["enum"] == ["START", "STOP"]
    assert schema["properties"]["mode"]["description"].endswith("(starts S)")
    assert schema["properties"]["doors"]["items"] == {"enum": ["left", "right"]}
    assert schema["properties"]["speed"] == {"type": "number", "default": 1.5}
    assert schema["properties"]["extra"] == {}
    json.dumps(tool)


def test_mcp_list_is_the_same_schema():
    tools = mcp_tools(DOCS, STATE)["tools"]
    (openai,) = openai_tools(DOCS, STATE)
    assert tools == [
        {
            "name": "drive_start",
            "description": openai["function"]["description"],
            "inputSchema": openai["function"]["parameters"],
        }
    ]


def test_export_off_is_the_bare_docs():
    assert openai_tools(DOCS, STATE, "off") == openai_tools(DOCS, InterfaceState())


def test_two_tools_of_one_name_are_refused():
    for export in (openai_tools, mcp_tools):
        with pytest.raises(ParamError, match="two are named a"):
            export((ToolDoc("a", ""), ToolDoc("a", "")), STATE)


@pytest.mark.parametrize("name", ["github/create_issue", "calendar.respond", "größe", "z" * 65])
def test_a_tool_goes_by_its_own_name_or_is_refused(name):
    (tool,) = mcp_tools((ToolDoc(name, ""),), STATE)["tools"]
    assert tool["name"] == name
    with pytest.raises(ParamError, match=f"OpenAI's form: {name}(?s:.*)rename it"):
        openai_tools((ToolDoc("fine", ""), ToolDoc(name, "")), STATE)


def test_what_an_owner_wrote_is_exported_unchanged_but_for_the_notes():
    schema = {
        "type": "object",
        "properties": {
            "line": {"$ref": "#/$defs/Line"},
            "any": True,
            "word": {"type": "string", "pattern": r"^\p{L}+$", "x-own": 1},
            "kind": {"oneOf": [{"const": "a"}, {"type": "null"}], "description": "Its kind."},
        },
        "$defs": {"Line": {"type": "object", "properties": {"sku": {"type": "string"}}, "additionalProperties": False}},
        "required": ["line"],
        "additionalProperties": {"type": "integer"},
    }
    doc = tool_doc("put", "Puts it.", schema)
    for export, key in ((lambda *a: openai_tools(*a)[0]["function"], "parameters"), (mcp_first, "inputSchema")):
        assert export((doc,), InterfaceState())[key] == schema
        noted = export((doc,), InterfaceState((Item("format", "put.kind", "docs", "a or b", "", ""),)))[key]
        assert noted["properties"].pop("kind")["description"] == "Its kind. (a or b)"
        assert noted == {**schema, "properties": {k: v for k, v in schema["properties"].items() if k != "kind"}}


def mcp_first(*given):
    return mcp_tools(*given)["tools"][0]
