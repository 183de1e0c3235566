"""An MCP server with names and schemas as servers in the wild have them: called, judged, shown and exported alike."""

import sys

import pytest
import yaml
from workspaces import ROOT

from seal.core.errors import ParamError
from seal.core.seeds import RoundKey
from seal.core.types import Call
from seal.diagnose.schema import schema_faults
from seal.env import load_env
from seal.interface.export import mcp_tools, openai_tools
from seal.interface.state import InterfaceState
from seal.policy.chat import describe
from seal.policy.scripted import GoldPolicy
from seal.rollout.engine import play
from seal.rollout.plan import requests_for
from seal.settings.play import CollectParams
from seal.verify.rollout import success
from seal.verify.turns import verify

pytest.importorskip("mcp")
sys.path.insert(0, str(ROOT / "tests"))
from mcp_odd import NO_ANSWER, SCHEMAS

COMMAND = [sys.executable, str(ROOT / "tests" / "mcp_odd.py")]
LEFT_OUT = ("illegal", "no_object")
GOLD = (
    'mail(from="ann")',
    'get-weather(city="Rome")',
    'calendar.respond(event="e1")',
    'github/create_issue(title="t", issue-type="get-weather(city=")',
    "3d(größe=1)",
    {"name": "list_schedules", "arguments": {"query_model": {"status": "open"}}},
    "open(other=1, from=2)",
)


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    tasks = [{"id": f"t{i}", "turns": [{"user": "do it", "gold": [call]}]} for i, call in enumerate(GOLD)]
    file = tmp_path_factory.mktemp("odd") / "tasks.yaml"
    file.write_text(yaml.safe_dump(tasks, allow_unicode=True))
    return load_env("custom", mcp={"command": COMMAND, "seconds": 20.0}, tasks=str(file))


@pytest.mark.parametrize("format", ["qwen_xml", "pythonic", "llama_json", "openai"])
def test_gold_passes_in_every_format(odd, format):
    requests = requests_for(odd.tasks(), CollectParams(group_size=2), RoundKey("r", 1, 0))
    assert len(requests) == 2 * len(GOLD)
    for request, rollout in zip(requests, play(odd, GoldPolicy(format), requests), strict=True):
        assert success(request.task, verify(odd, request.task, rollout.calls_by_turn(1)), rollout), rollout.steps


def test_calls_go_through_or_are_refused_by_the_field(odd):
    session = odd.open(odd.tasks()[0])
    for name, arguments in (
        ("anything", {"a": 1, "b": [{}]}),
        ("javascript", {"y": "12", "l": "é"}),
        ("nothing", {}),
        ("php", {}),
        ("dangling", {"a": 1, "b": "x"}),
        ("broken_output", {}),
    ):
        assert session.call(Call(name, arguments)).error_kind == ""
    for name, arguments, kind, said in (
        ("list_schedules", {"query_model": {"limit": 1}}, "missing_argument", "argument query_model.status: "),
        ("list_schedules", {"query_model": {"status": "x"}}, "invalid_value", "argument query_model.status: "),
        ("javascript", {"y": "x"}, "invalid_value", "argument y: "),
        ("open", {"z": "1"}, "wrong_type", "argument z: "),
        ("mail", {}, "missing_argument", "'from' is a required property"),
        ("mail", {"from": "x", "b": 1}, "unexpected_argument", "unexpected argument b"),
        ("illegal", {}, "unknown_tool", "its inputSchema is not legal: properties.a.type"),
    ):
        result = session.call(Call(name, arguments))
        assert result.error_kind == kind and said in result.raw
        doc = next((doc for doc in odd.tools.docs if doc.name == name), None)
        assert doc is None or schema_faults(Call(name, arguments), doc)


def test_an_answer_of_another_shape_is_an_error_result(odd):
    session = odd.open(odd.tasks()[0])
    result = session.call(Call(NO_ANSWER, {}))
    assert result.error_kind == "other" and "not MCP's" in result.raw
    assert session.call(Call("mail", {"from": "x"})).error_kind == ""


def test_an_illegal_schema_costs_its_tool_alone(odd):
    names = [doc.name for doc in odd.tools.docs]
    assert names == [*(name for name in SCHEMAS if name not in LEFT_OUT), NO_ANSWER, "broken_output"]
    assert set(odd.tools.illegal) == set(LEFT_OUT)


def test_docs_are_shown_in_full_and_exported_unchanged(odd):
    docs = {doc.name: doc for doc in odd.tools.docs}
    assert describe(docs["list_schedules"], 8) == "list_schedules(query_model?: {status: open|closed, limit?: int}) d"
    exported = {tool["name"]: tool["inputSchema"] for tool in mcp_tools(odd.tools.docs, InterfaceState())["tools"]}
    for name in set(docs) - {"broken_output", "nothing", "php", NO_ANSWER}:
        assert exported[name] == SCHEMAS[name]
    with pytest.raises(ParamError, match="calendar.respond"):
        openai_tools([docs["mail"], docs["calendar.respond"]], InterfaceState())
