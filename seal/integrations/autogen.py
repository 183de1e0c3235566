"""AutoGen tools under a learning interface (needs autogen-core, `pip install 'seal-coevolve[autogen]'`)."""

from collections.abc import Mapping, Sequence
from typing import Any

from autogen_core import CancellationToken
from autogen_core.tools import BaseTool, Tool, ToolSchema

from seal.core.types import Mode
from seal.integrations.guide import Guide, checked_tools
from seal.interface.export import annotated, noted
from seal.interface.render import check_mode
from seal.interface.state import InterfaceState
from seal.tools.docs import tool_doc


class EvolvedTool(BaseTool[Any, Any]):
    """A tool with the notes in its schema; what it raises tells how to recover. It runs the tool it was made of."""

    def __init__(self, tool: Tool, guide: Guide):
        self._tool, self._guide, doc = tool, guide, guide.docs[tool.name]
        super().__init__(tool.args_type(), tool.return_type(), tool.name, noted(tool.description, doc, ""))
        parameters = annotated(tool.schema.get("parameters") or {}, doc)
        self._schema = {**tool.schema, "description": self.description, "parameters": parameters}

    @property
    def schema(self) -> ToolSchema:
        return self._schema

    def return_value_as_string(self, value: Any) -> str:
        return self._tool.return_value_as_string(value)

    async def run(self, args: Any, cancellation_token: CancellationToken) -> Any:
        return await self.run_json(args.model_dump(), cancellation_token)

    async def run_json(
        self, args: Mapping[str, Any], cancellation_token: CancellationToken, call_id: str | None = None
    ) -> Any:
        try:
            value = await self._tool.run_json(args, cancellation_token, call_id=call_id)
        except Exception as error:  # whatever a tool raises is what the model reads
            raise ToolError(self._guide.after_exception(self.name, args, error)) from error
        text = self._tool.return_value_as_string(value)
        shown = self._guide.after(self.name, args, text)
        return value if shown == text else shown

    async def save_state_json(self) -> Mapping[str, Any]:
        return await self._tool.save_state_json()

    async def load_state_json(self, state: Mapping[str, Any]) -> None:
        await self._tool.load_state_json(state)


class ToolError(Exception):
    """A failed call, in the words the model reads."""


def evolve_tools(tools: Sequence[Tool], state: InterfaceState, mode: Mode = "full") -> list[Tool]:
    """The same tools for `AssistantAgent(tools=...)` or a workbench; in mode "off" the very ones.

    Call it once a conversation: repeated failures are counted. A name that no tool has is answered by AutoGen itself.
    Raises ParamError for two tools of one name, and for what is no tool or no interface.
    """
    if check_mode(mode) == "off":
        return list(tools)
    tools = checked_tools(tools, Tool, "make it one: autogen_core.tools.FunctionTool(function, description)")
    docs = [tool_doc(tool.name, tool.description, tool.schema.get("parameters") or {}) for tool in tools]
    guide = Guide(docs, state, mode)
    return [EvolvedTool(tool, guide) for tool in tools]
