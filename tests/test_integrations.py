"""Evolved docs and recovery feedback around real tools of plain Python, LangChain and AutoGen; off changes none."""

import asyncio
import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Literal

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, FunctionExecutionResultMessage, RequestUsage
from autogen_core.tools import FunctionTool, StaticWorkbench
from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolArg, StructuredTool, Tool, ToolException, tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from seal.core.errors import ParamError
from seal.core.types import ToolDoc
from seal.integrations import autogen, langchain
from seal.integrations.functions import PlainTools
from seal.integrations.guide import Guide, kind_of_exception
from seal.interface.state import InterfaceState, Item
from seal.interface.wording import RECOVERY_TEMPLATES

EXAMPLES = Path(__file__).parents[1] / "examples" / "evolved_tools"


def item(kind, target, where, text):
    return Item(kind, target, where, text, "", "r1")


STATE = InterfaceState(
    (
        item("enum", "refund.reason", "docs", "damaged K3 late K7"),
        item("needs", "refund", "docs", "after verify"),
        item("recover", "refund", "feedback", "after verify"),
        item("guidance", "*", "hint", "read earlier results"),
        *(item("recover_any", kind, "feedback", text) for kind, text in RECOVERY_TEMPLATES.items()),
    )
)


def refund(order: str, reason: Literal["K3", "K7"], cents: int = 0) -> str:
    """Give money back.

    Args:
        order: id of the order
        reason: why
    """
    if order == "gone":
        return json.dumps({"error": "order not found"})
    if order == "new":
        raise RuntimeError("refused: not yet verified")
    return f"refunded {order}"


def verify(order: str) -> str:
    """Check the buyer."""
    return f"verified {order}"


OK, NEW, GONE = ({"order": order, "reason": "K3"} for order in ("1", "new", "gone"))


# Plain Python


def test_plain_schemas_hold_the_notes_and_the_allowed_values():
    tools = PlainTools([refund, verify], STATE)
    function = tools.schemas()[0]["function"]
    assert function["description"] == "Give money back. (after verify)"
    reason = function["parameters"]["properties"]["reason"]
    assert reason["enum"] == ["K3", "K7"] and reason["description"] == "why (damaged K3 late K7)"
    assert tools.guide.hints() == ("read earlier results",)


@pytest.mark.parametrize(
    ("name", "arguments", "shown"),
    [
        ("refund", OK, "refunded 1"),
        ("refund", json.dumps(OK), "refunded 1"),
        ("refund", NEW, "refused: not yet verified | after verify"),
        ("refund", {"order": "1"}, "error: missing argument reason | add the required reason="),
        ("verify", {"order": "1", "now": 1}, "error: unexpected argument now | this tool takes only order="),
        ("refund", {**OK, "cents": "1"}, "Input should be a valid integer | give cents= integer"),
        ("refund", {**OK, "reason": "K9"}, "Input should be 'K3' or 'K7' | give reason= one of K3 K7"),
        ("verfy", {}, "error: there is no tool verfy | no such tool nearest verify"),
        ("refund", "{", "error: arguments are no JSON"),
        ("refund", "[]", "error: arguments are no JSON object"),
        ("verify", {1: 2, "x": 3}, "error: unexpected argument 1 | this tool takes only order="),
    ],
)
def test_plain_calls_are_answered_with_what_the_interface_knows(name, arguments, shown):
    assert shown in PlainTools([refund, verify], STATE).call(name, arguments)


def test_a_call_that_fails_again_is_told_so_until_reset():
    tools = PlainTools([refund], STATE)
    first, second = tools.call("refund", NEW), tools.call("refund", NEW)
    assert second == f"{first} | {RECOVERY_TEMPLATES['loop']}"
    tools.guide.reset()
    assert tools.call("refund", NEW) == first


def test_plain_functions_keep_their_signature_and_say_errors():
    evolved, _ = PlainTools([refund, verify], STATE).functions()
    assert evolved.__name__ == "refund" and "reason: why (damaged K3 late K7)" in evolved.__doc__
    assert evolved("1", "K3") == "refunded 1"
    assert evolved("new", reason="K3") == "refused: not yet verified | after verify"
    assert "add the required reason=" in evolved("1")


def test_off_is_the_bare_tool_everywhere():
    """Docs, schemas and every answer, to the byte, whatever the interface holds."""
    off, bare = PlainTools([refund], STATE, "off"), PlainTools([refund], InterfaceState())
    assert off.schemas() == bare.schemas() and off.guide.hints() == ()
    for name, arguments in (("refund", NEW), ("refund", GONE), ("refund", {}), ("refnd", {}), ("refund", NEW)):
        assert off.call(name, arguments) == bare.call(name, arguments)
    original = tool(refund)
    assert langchain.evolve_tools([original], STATE, "off") == [original]
    function = FunctionTool(refund, "Give money back.")
    assert autogen.evolve_tools([function], STATE, "off") == [function]


def test_off_raises_where_the_bare_tool_raises():
    original = tool(refund)
    (off,) = langchain.evolve_tools([original], STATE, "off")
    for bare in (original, off):
        with pytest.raises(RuntimeError, match="not yet verified$"):
            bare.invoke(asked(NEW))
        assert bare.invoke(asked(GONE)).status == "success", "the tool called it none"
    (off,) = autogen.evolve_tools([FunctionTool(refund, "Give money back.")], STATE, "off")
    with pytest.raises(RuntimeError, match="not yet verified$"):
        asyncio.run(off.run_json(NEW, CancellationToken()))


def test_two_tools_of_one_name_are_refused():
    """None is dropped: cues and a model's calls find a tool by its name."""
    makers = (
        lambda: PlainTools([refund, refund], STATE),
        lambda: langchain.evolve_tools([tool(refund)] * 2, STATE),
        lambda: autogen.evolve_tools([FunctionTool(refund, "x")] * 2, STATE),
        lambda: Guide([ToolDoc("refund", ""), ToolDoc("refund", "")], STATE),
    )
    for make in makers:
        with pytest.raises(ParamError, match="two are named refund"):
            make()


class Callable:
    def __call__(self, order: str) -> str:
        return order


async def later(order: str) -> str:
    return order


def many(*orders: str) -> str:
    return ""


def bare(order) -> str:
    return order


@pytest.mark.parametrize(
    ("unfit", "says"),
    [
        (functools.partial(refund, "1"), r"functools.partial.* \(partial\)\n.*give a function"),
        (Callable(), r"\(Callable\)\n.*give a function"),
        (int, "<class 'int'>.*\n.*give a function"),
        (lambda: "", "give a function"),
        ("refund", r"'refund' \(str\)\n.*give a function"),
        (max, "max: no signature"),
        (later, "later: it is async"),
        (many, r"orders: \*orders"),
        (bare, "order: no type hint"),
    ],
)
def test_what_cannot_be_a_plain_tool_is_refused(unfit, says):
    with pytest.raises(ParamError, match=says):
        PlainTools([verify, unfit], STATE)


def test_methods_and_wrapped_functions_are_plain_tools():
    tools = PlainTools([functools.lru_cache(verify), Callable().__call__], STATE)
    assert tools.call("verify", {"order": "1"}) == "verified 1" and tools.call("__call__", {"order": "1"}) == "1"


@pytest.mark.parametrize("state", [None, {"version": 1, "items": []}, "interface.json", Path("interface.json")])
def test_what_is_no_interface_is_refused(state):
    makers = (
        lambda: PlainTools([refund], state),
        lambda: langchain.evolve_tools([tool(refund)], state),
        lambda: autogen.evolve_tools([FunctionTool(refund, "x")], state),
    )
    for make in makers:
        with pytest.raises(ParamError, match=rf"interface: .*\({type(state).__name__}\)\n.*load_interface"):
            make()


def test_what_is_no_tool_of_the_framework_is_refused():
    makers = {
        "tools: .*\n.*a list": (
            lambda: PlainTools(refund, STATE),
            lambda: PlainTools(None, STATE),
            lambda: langchain.evolve_tools(tool(refund), STATE),
            lambda: autogen.evolve_tools(FunctionTool(refund, "x"), STATE),
        ),
        "tool: <function refund.*\n.*make it one": (
            lambda: langchain.evolve_tools([refund], STATE),
            lambda: autogen.evolve_tools([refund], STATE),
        ),
    }
    for says, made in makers.items():
        for make in made:
            with pytest.raises(ParamError, match=says):
                make()


def test_modes_of_third_party_tools():
    docs, feedback = (PlainTools([refund], STATE, mode) for mode in ("docs_only", "feedback_only"))
    assert docs.schemas() == PlainTools([refund], STATE).schemas() and " | " not in docs.call("refund", NEW)
    assert feedback.schemas() == PlainTools([refund], STATE, "off").schemas()
    assert feedback.call("refund", NEW).endswith(" | after verify")
    with pytest.raises(ParamError, match="half"):
        Guide([ToolDoc("a", "")], STATE, "half")


# LangChain


def lc_tools(*functions, state=STATE, mode="full"):
    made = [tool(function, parse_docstring=function is refund) for function in functions]
    return langchain.evolve_tools(made, state, mode)


def asked(arguments, name="refund"):
    return {"type": "tool_call", "id": "c1", "name": name, "args": arguments}


def test_langchain_models_read_the_notes():
    (made,) = lc_tools(refund)
    function = convert_to_openai_tool(made)["function"]
    assert function["description"] == "Give money back. (after verify)"
    properties = function["parameters"]["properties"]
    assert properties["reason"]["description"] == "why (damaged K3 late K7)"
    assert properties["reason"]["enum"] == ["K3", "K7"] and properties["cents"]["default"] == 0


@pytest.mark.parametrize(
    ("arguments", "status", "shown"),
    [
        (OK, "success", "refunded 1"),
        (NEW, "error", "refused: not yet verified | after verify"),
        (GONE, "error", '{"error": "order not found"} | look it up with'),
        ({"order": "1"}, "error", " | add the required reason="),
        ({**OK, "reason": "K9"}, "error", "one of K3 K7"),
    ],
)
def test_langchain_answers_are_tool_messages(arguments, status, shown):
    def find_order(order: str) -> str:
        """Find an order."""
        return order

    made = lc_tools(refund, find_order)[0]
    message = made.invoke(asked(arguments))
    assert isinstance(message, ToolMessage) and message.tool_call_id == "c1"
    assert message.status == status and shown in message.content
    again = lc_tools(refund, find_order)[0]
    assert asyncio.run(again.ainvoke(asked(arguments))).content == message.content


def test_langchain_keeps_artifacts_and_refuses_injected_arguments():
    def chart(n: int) -> tuple[str, list[int]]:
        """Draw."""
        return "drawn", [n]

    made = StructuredTool.from_function(chart, response_format="content_and_artifact")
    (evolved,) = langchain.evolve_tools([made], STATE)
    message = evolved.invoke(asked({"n": 2}, "chart"))
    assert (message.content, message.artifact) == ("drawn", [2])

    def secret(n: int, user: Annotated[str, InjectedToolArg]) -> str:
        """Whose."""
        return user

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    for made in (tool(secret), StructuredTool(name="secret", description="", args_schema=schema, func=secret)):
        with pytest.raises(ParamError, match="injected: user"):
            langchain.evolve_tools([made], STATE)


def test_langchain_tools_with_a_json_schema_hold_the_notes():
    """As MCP adapters make them."""
    reason = {"type": "string", "description": "why"}
    schema = {"type": "object", "properties": {"order": {"type": "string"}, "reason": reason}, "required": ["order"]}

    async def asks(**arguments):
        return refund(**arguments), None

    kinds = {"coroutine": asks, "response_format": "content_and_artifact"}
    made = StructuredTool(name="refund", description="Give money back.", args_schema=schema, **kinds)
    (evolved,) = langchain.evolve_tools([made], STATE)
    function = convert_to_openai_tool(evolved)["function"]
    assert function["description"] == "Give money back. (after verify)"
    assert function["parameters"]["properties"]["reason"]["description"] == "why (damaged K3 late K7)"
    assert function["parameters"]["required"] == ["order"] and schema["properties"]["reason"] is reason
    assert asyncio.run(evolved.ainvoke(asked(OK))).content == "refunded 1"
    assert asyncio.run(evolved.ainvoke(asked(NEW))).content == "refused: not yet verified | after verify"


def test_langchain_tools_of_one_string_keep_their_schema():
    made = Tool("refund", lambda order: refund(order, "K3"), "Give money back.")
    (evolved,) = langchain.evolve_tools([made], STATE)
    function, was = (convert_to_openai_tool(one)["function"] for one in (evolved, made))
    assert function["description"] == "Give money back. (after verify)"
    assert function["parameters"]["required"] == was["parameters"]["required"] == ["__arg1"]
    assert function["parameters"]["properties"] == {"__arg1": {"type": "string"}}
    assert evolved.invoke(asked({"__arg1": "1"})).content == "refunded 1"
    assert evolved.invoke(asked({"__arg1": "new"})).content == "refused: not yet verified | after verify"


def test_langchain_tools_that_handle_their_errors_still_get_recovery():
    def fails(order: str) -> str:
        """Fail."""
        raise ToolException("order must be open first")

    made = StructuredTool.from_function(fails, handle_tool_error=True)
    (evolved,) = langchain.evolve_tools([made], STATE)
    message = evolved.invoke(asked({"order": "1"}, "fails"))
    assert message.status == "error"
    assert message.content == f"order must be open first | {RECOVERY_TEMPLATES['precondition']}"


def test_an_interrupt_of_the_graph_is_not_an_error():
    class GraphBubbleUp(Exception):
        pass

    def pause(order: str) -> str:
        """Ask a person."""
        raise GraphBubbleUp

    (evolved,) = langchain.evolve_tools([tool(pause)], STATE)
    with pytest.raises(GraphBubbleUp):
        evolved.invoke(asked({"order": "1"}, "pause"))


# AutoGen


class Scripted(ChatCompletionClient):
    """A model that asks for the calls it is given, then says done; it keeps what it was shown."""

    component_type = "model"
    model_info = {
        "vision": False,
        "function_calling": True,
        "json_output": False,
        "family": "unknown",
        "structured_output": False,
    }

    def __init__(self, *calls):
        self._calls, self.read, self.tools = list(calls), [], []

    async def create(self, messages, *, tools=(), **_):
        self.read, self.tools = messages, tools
        usage, asks = RequestUsage(0, 0), bool(self._calls)
        content = [FunctionCall("1", json.dumps(self._calls[0][1]), self._calls.pop(0)[0])] if asks else "done"
        return CreateResult(
            finish_reason="function_calls" if asks else "stop", content=content, usage=usage, cached=False
        )

    def create_stream(self, *_, **__):
        raise NotImplementedError  # nobody may call it here

    async def close(self):
        pass

    def actual_usage(self):
        return RequestUsage(0, 0)

    total_usage = actual_usage

    def count_tokens(self, *_, **__):
        return 0

    def remaining_tokens(self, *_, **__):
        return 1000

    @property
    def capabilities(self):
        return self.model_info


def converse(*calls, **tools):
    client = Scripted(*calls)
    agent = AssistantAgent("support", client, reflect_on_tool_use=False, max_tool_iterations=len(calls) + 1, **tools)
    asyncio.run(agent.run(task="refund it"))
    shown = [m.content[0].content for m in client.read if isinstance(m, FunctionExecutionResultMessage)]
    return client, shown


def test_autogen_agents_read_the_notes_and_the_recovery():
    functions = [FunctionTool(refund, "Give money back."), FunctionTool(verify, "Check the buyer.")]
    calls = [("refund", NEW), ("refund", GONE), ("refund", {"order": "1"}), ("refund", OK)]
    client, shown = converse(*calls, tools=autogen.evolve_tools(functions, STATE))
    schema = client.tools[0]
    assert schema["description"] == "Give money back. (after verify)"
    assert schema["parameters"]["properties"]["reason"]["description"] == "reason (damaged K3 late K7)"
    assert shown[0] == "refused: not yet verified | after verify"
    assert shown[1] == '{"error": "order not found"}'  # no tool in sight looks it up
    assert shown[2].endswith(" | add the required reason=")
    assert shown[3] == "refunded 1"


def test_autogen_tools_work_in_a_workbench_and_alone():
    (evolved,) = autogen.evolve_tools([FunctionTool(refund, "Give money back.")], STATE)
    _, shown = converse(("refund", NEW), ("refund", NEW), workbench=StaticWorkbench([evolved]))
    assert shown[1] == f"{shown[0]} | {RECOVERY_TEMPLATES['loop']}"
    token = CancellationToken()
    assert asyncio.run(evolved.run_json(OK, token)) == "refunded 1"
    assert asyncio.run(evolved.run(evolved.args_type()(**OK), token)) == "refunded 1"
    with pytest.raises(autogen.ToolError, match="after verify"):
        asyncio.run(evolved.run_json(NEW, token))


# All


def test_kinds_of_exceptions():
    assert kind_of_exception(PermissionError("no")) == "permission"
    assert kind_of_exception(KeyError("7")) == "not_found"
    assert kind_of_exception(RuntimeError("?")) == "other"


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("plain", "invalid reason 'late' | reason= damaged K3 late K7"),
        ("langchain_tools", "content='refused: not yet allowed | after verify_buyer'"),
        ("autogen_tools", "content='refused: not yet allowed | after verify_buyer'"),
    ],
)
def test_the_examples_run(script, says):
    done = subprocess.run([sys.executable, f"{script}.py"], cwd=EXAMPLES, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert says in done.stdout


def test_the_page_on_the_interface_runs():
    page = (EXAMPLES.parents[1] / "docs" / "interface.md").read_text()
    code = next(block for block in page.split("```python\n")[1:] if "PlainTools" in block).partition("```")[0]
    done = subprocess.run([sys.executable, "-c", code], cwd=EXAMPLES, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] in page
