"""A small real MCP server: counters, with a way to hang and a way to die."""

import os
import time

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("counter")
counters: dict[str, int] = {}


@server.tool()
def count(name: str, by: int = 1) -> str:
    """Raise a counter."""
    if name not in counters:
        raise ToolError(f"no counter {name}: not found")
    counters[name] += by
    return f"{name} is {counters[name]}"


@server.tool()
def hang() -> str:
    """Answer after a minute."""
    time.sleep(60)
    return "late"


@server.tool()
def die() -> str:
    """End the server."""
    os._exit(3)


@server.tool()
def start(counters_at_start: dict[str, int] | None = None) -> str:
    """Start anew."""
    counters.clear()
    counters.update(counters_at_start or {"a": 0})
    return "ok"


@server.tool()
def snapshot() -> dict[str, int]:
    """All counters."""
    return counters


if __name__ == "__main__":
    start()
    server.run()
