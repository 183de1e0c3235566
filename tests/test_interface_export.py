"""Evolved docs as OpenAI tools and as an MCP list."""

import json

import pytest

from seal.core.errors import ParamError
from seal.core.types import Param, ToolDoc
from seal.interface.export import mcp_tools, openai_tools
from seal.interface.state import InterfaceState, Item

DOCS = (
    ToolDoc(
        "drive.start",
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
        Item("needs", "drive.start", "docs", "after unlock", "", ""),
        Item("format", "drive.start.mode", "docs", "starts S", "", ""),
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


@pytest.mark.parametrize("names", [("a.b", "a_b"), ("z" * 70 + "1", "z" * 70 + "2"), ("a", "a")])
def test_two_tools_of_one_name_there_are_refused(names):
    docs = tuple(ToolDoc(name, "") for name in names)
    for export in (openai_tools, mcp_tools):
        with pytest.raises(ParamError, match=f"{names[0]} and {names[1]} are both"):
            export(docs, STATE)
