"""What a server lists, before the SDK reads it: one schema that the SDK refuses would cost all tools of the server."""

from typing import Any

from seal.core.types import Json

PLAIN: Json = {"type": "object"}  # what the SDK gets to read in the place of each schema


class AsSent:
    """A transport, or its stream of messages, that keeps the input schemas of `tools/list` as the server wrote them.

    Of a tool the SDK gets to read what is used here: its name and description. Results are read as text.
    """

    def __init__(self, inner: Any, schemas: dict[str, Json]):
        self._inner, self.schemas = inner, schemas

    async def __aenter__(self) -> Any:
        entered = await self._inner.__aenter__()
        if not isinstance(entered, tuple):  # the stream itself
            return self
        read, write = entered
        return AsSent(read, self.schemas), write

    async def __aexit__(self, *raised: Any) -> Any:
        return await self._inner.__aexit__(*raised)

    def __aiter__(self) -> "AsSent":
        return self

    async def __anext__(self) -> Any:
        item = await self._inner.__anext__()
        result = getattr(getattr(item, "message", None), "result", None)
        tools = result.get("tools") if isinstance(result, dict) else None
        if isinstance(tools, list):
            named = [tool for tool in tools if isinstance(tool, dict) and isinstance(tool.get("name"), str)]
            self.schemas.update({tool["name"]: tool.get("inputSchema", PLAIN) for tool in named})
            result["tools"] = [
                {"name": tool["name"], "description": str(tool.get("description") or ""), "inputSchema": PLAIN}
                for tool in named
            ]
        return item

    async def aclose(self) -> None:
        await self._inner.aclose()
