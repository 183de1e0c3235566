"""LangChain tools under a learning interface (needs langchain-core, `pip install 'seal-coevolve[langchain]'`)."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, Tool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool

from seal.core.errors import ParamError
from seal.core.types import Json, Mode, ToolDoc
from seal.integrations.guide import Guide, checked_tools
from seal.interface.export import annotated, noted
from seal.interface.render import check_mode
from seal.interface.state import InterfaceState
from seal.tools.docs import tool_doc
from seal.tools.error_kinds import error_kind


def evolve_tools(tools: Sequence[BaseTool], state: InterfaceState, mode: Mode = "full") -> list[BaseTool]:
    """Tools that do what `tools` do, with the notes in their docs; an error is a ToolMessage with recovery text.

    Mode "off": the very tools, which raise where they raise. Cues find a tool by its name. Call it once a conversation:
    repeated failures are counted. Raises ParamError for a tool with injected arguments, which a wrapper would not be
    given, for two tools of one name, and for what is no tool or no interface.
    """
    if check_mode(mode) == "off":
        return list(tools)
    tools = checked_tools(tools, BaseTool, "make it one: langchain_core.tools.tool(function)")
    schemas = [schema_of(tool) for tool in tools]
    docs = [tool_doc(tool.name, tool.description, schema) for tool, schema in zip(tools, schemas, strict=True)]
    guide = Guide(docs, state, mode)
    return [_evolved(tool, schema, guide.docs[tool.name], guide) for tool, schema in zip(tools, schemas, strict=True)]


def schema_of(tool: BaseTool) -> Json:
    """The JSON schema of a tool's arguments, as a model is shown it. Raises ParamError for injected arguments."""
    if isinstance(tool, Tool) and tool.args_schema is None:  # one string, whatever its function calls it
        return convert_to_openai_tool(tool)["function"]["parameters"]
    shown = tool.tool_call_schema
    # a dict (as MCP adapters give it) is shown whole: only the function can ask for more
    given = isinstance(shown, dict)
    schema, fields = (shown, ()) if given else (shown.model_json_schema(), tool.get_input_schema().model_fields)
    injected = getattr(tool, "_injected_args_keys", ())  # langchain-core 1.0 has none
    if hidden := sorted({*fields, *injected} - (schema.get("properties") or {}).keys()):
        remedy = "use tools whose arguments a model gives"
        raise ParamError(f"tool {tool.name}", f"injected: {', '.join(hidden)}", remedy)
    return schema


def _evolved(tool: BaseTool, schema: Json, doc: ToolDoc, guide: Guide) -> BaseTool:
    def answer(message: Any, arguments: dict[str, Any]) -> Any:
        content, artifact, failed = message, None, False
        if isinstance(message, ToolMessage):
            content, artifact, failed = message.content, message.artifact, message.status == "error"
        if isinstance(content, str):
            kind = error_kind(f"error: {content}") if failed else ""
            shown = guide.after(tool.name, arguments, content, kind)
            if failed or shown != content:
                raise ToolException(shown)
        return (content, artifact) if tool.response_format == "content_and_artifact" else content

    def tool_call(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"type": "tool_call", "id": tool.name, "name": tool.name, "args": arguments}

    def run(config: RunnableConfig, **arguments: Any) -> Any:
        try:
            message = tool.invoke(tool_call(arguments), config)
        except Exception as error:  # whatever a tool raises is what the model reads
            raise _tool_error(guide, tool.name, arguments, error) from error
        return answer(message, arguments)

    async def arun(config: RunnableConfig, **arguments: Any) -> Any:
        try:
            message = await tool.ainvoke(tool_call(arguments), config)
        except Exception as error:  # whatever a tool raises is what the model reads
            raise _tool_error(guide, tool.name, arguments, error) from error
        return answer(message, arguments)

    return StructuredTool(
        name=tool.name,
        description=noted(tool.description, doc, ""),
        args_schema=annotated(schema, doc),
        func=run,
        coroutine=arun,
        response_format=tool.response_format,
        return_direct=tool.return_direct,
        tags=tool.tags,
        metadata=tool.metadata,
        handle_tool_error=True,
    )


def _tool_error(guide: Guide, name: str, arguments: dict[str, Any], error: Exception) -> Exception:
    """The error as the model reads it; LangGraph's own (an interrupt) is no error of the tool and stays what it is."""
    if any(kind.__name__ == "GraphBubbleUp" for kind in type(error).__mro__):
        return error
    return ToolException(guide.after_exception(name, arguments, error))
