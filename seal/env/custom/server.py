"""Tools of an MCP server over stdio, through the official SDK: every rollout has a server of its own.

Without a reset tool that is a fresh process. With one, processes are kept and reset between rollouts. A server that
ends or hangs is an error result, in this rollout alone. The SDK is asynchronous: its loop runs in one thread.
"""

import asyncio
import hashlib
import json
import tempfile
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seal.core.errors import DependencyError, ParamError
from seal.core.types import Call, Json, Result
from seal.env.base import Session
from seal.env.custom.functions import result_of
from seal.settings.envs import McpParams
from seal.tools.docs import tool_doc
from seal.tools.error_kinds import error_kind

START_SECONDS, STOP_SECONDS = 60.0, 10.0
ENDED, HANGS = "error: the server ended", "error: the server did not answer in time"
_VIOLATIONS: Mapping[str, str] = {"required": "missing_argument", "type": "wrong_type"}


class Server:
    """One process. `call` waits for the answer: (text, error kind)."""

    def __init__(self, params: McpParams, folder: Path, loop: asyncio.AbstractEventLoop):
        self._params, self._folder, self._loop = params, folder, loop
        self.alive, self.tools = True, []
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - its stderr, for as long as it lives
        ready = asyncio.run_coroutine_threadsafe(self._start(), loop)
        try:
            self.tools = ready.result(START_SECONDS)
        except Exception as error:  # whatever the SDK raises for a command that is no server
            loop.call_soon_threadsafe(self.stop().cancel)
            self._log.seek(0)
            words = (self._log.read().strip().splitlines() or [f"{type(error).__name__} {error}"])[-1]
            value = f"{' '.join(params.command)}: {words}"
            remedy = f"run it by hand in {folder}; it must speak MCP on its standard input and output"
            raise DependencyError("MCP server", value, remedy) from error

    def call(self, name: str, arguments: Mapping[str, Json]) -> tuple[str, str]:
        if not self.alive:
            return ENDED, "other"
        text, kind, self.alive = asyncio.run_coroutine_threadsafe(self._ask(name, arguments), self._loop).result()
        if not self.alive:
            self.stop()
        return text, kind

    def stop(self) -> asyncio.Task:
        """Asks it to end; the task that is done when it has."""
        self.alive = False
        self._loop.call_soon_threadsafe(self._inbox.put_nowait, None)
        return self._task

    async def _start(self) -> list[Any]:
        self._inbox: asyncio.Queue = asyncio.Queue()
        ready = self._loop.create_future()
        self._task = self._loop.create_task(self._serve(ready))
        return await ready

    async def _serve(self, ready: asyncio.Future) -> None:
        """The connection's life in one task, as the SDK wants it."""
        from mcp import Client, StdioServerParameters
        from mcp.client.stdio import stdio_client

        command, *args = self._params.command
        try:
            parameters = StdioServerParameters(command=command, args=args, cwd=self._folder)
            async with Client(stdio_client(parameters, errlog=self._log), cache=None) as client:
                ready.set_result(await _listed(client))
                while (request := await self._inbox.get()) is not None:
                    name, arguments, answer = request
                    answer.set_result(await self._answer(client, name, arguments))
        except (Exception, asyncio.CancelledError) as error:
            if not ready.done():
                ready.set_exception(error)

    async def _ask(self, name: str, arguments: Mapping[str, Json]) -> tuple[str, str, bool]:
        answer = self._loop.create_future()
        await self._inbox.put((name, dict(arguments), answer))
        done, _ = await asyncio.wait((answer, self._task), return_when=asyncio.FIRST_COMPLETED)
        return answer.result() if answer in done else (ENDED, "other", False)

    async def _answer(self, client: Any, name: str, arguments: dict[str, Json]) -> tuple[str, str, bool]:
        """(text, error kind, whether the server goes on)."""
        from mcp import MCPError
        from mcp.types import CONNECTION_CLOSED

        try:
            found = await asyncio.wait_for(client.call_tool(name, arguments), self._params.seconds)
        except TimeoutError:
            return HANGS, "timeout", False
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                return ENDED, "other", False
            text = f"error: {error}"
            return text, error_kind(text) or "other", True
        text = "\n".join(getattr(block, "text", f"[{block.type}]") for block in found.content)
        text = text or json.dumps(found.structured_content, ensure_ascii=False)
        return text, (error_kind(f"error: {text}") or "other") if found.is_error else "", True


class McpTools:
    """The tools of a server as its `tools/list` gives them. Raises ParamError or DependencyError."""

    def __init__(self, params: McpParams, folder: Path):
        try:
            import mcp  # noqa: F401
        except ImportError:
            raise DependencyError("package", "mcp is not installed", "pip install 'seal-coevolve[mcp]'") from None
        self.folder, self._params = folder, params
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="mcp", daemon=True).start()
        self._servers: weakref.WeakSet[Server] = weakref.WeakSet()
        self._free: list[Server] = []
        weakref.finalize(self, _stop_all, self._servers, self._loop)
        listed = self._server()
        tools = {tool.name: tool for tool in listed.tools}
        for own in filter(None, (params.reset, params.state)):
            if own not in tools:
                raise ParamError("envs.custom.mcp", own, f"no such tool; the server has: {', '.join(tools)}")
        hidden = {params.reset, params.state}
        self.schemas = {name: dict(tool.input_schema) for name, tool in tools.items() if name not in hidden}
        docs = ((name, tools[name].description or "", schema) for name, schema in self.schemas.items())
        self.docs = tuple(tool_doc(name, " ".join(text.split()), schema) for name, text, schema in docs)
        written = json.dumps([[doc.name, doc.description, self.schemas[doc.name]] for doc in self.docs], sort_keys=True)
        self.digest = hashlib.blake2b(written.encode(), digest_size=4).hexdigest()
        self.give_back(listed, new=True)

    def open(self, state: Mapping[str, Json]) -> "McpSession":
        """A fresh world; its server starts when it is first needed."""
        if state and not self._params.reset:
            raise ParamError("state", ", ".join(state), "name the tool that takes it: envs.custom.mcp.reset")
        return McpSession(self, dict(state))

    def lease(self, state: Mapping[str, Json]) -> Server:
        """A server in the task's initial state, the caller's alone."""
        server = self._free.pop() if self._free else self._server()
        if self._params.reset:
            text, kind = server.call(self._params.reset, state)
            if kind:
                raise ParamError("envs.custom.mcp.reset", text, f"{self._params.reset} must take: {', '.join(state)}")
        return server

    def give_back(self, server: Server, new: bool = False) -> None:
        """Free for another session where it starts anew by itself (`new`: nobody has used it); else it ends."""
        if server.alive and (new or self._params.reset):
            self._free.append(server)
        else:
            server.stop()

    def public_state(self, server: Server) -> dict[str, Json]:
        """The public state: what the state tool says; nothing without one."""
        text, kind = server.call(self._params.state, {}) if self._params.state else ("{}", "")
        if not server.alive:
            return {"server": "ended"}
        try:
            value = None if kind else json.loads(text)
        except ValueError:
            kind = "other"
        if kind:
            raise ParamError("envs.custom.mcp.state", text[:200], f"{self._params.state} must answer with JSON")
        return value if isinstance(value, dict) else {"state": value}

    def _server(self) -> Server:
        server = Server(self._params, self.folder, self._loop)
        self._servers.add(server)
        return server


class McpSession(Session):
    """One world: a server that no other session talks to."""

    def __init__(self, tools: McpTools, state: Mapping[str, Json]):
        self._tools, self._start, self._server = tools, state, None

    def call(self, call: Call) -> Result:
        return result_of(*(self._refusal(call) or self._own().call(call.name, call.arguments)))

    def state(self) -> dict[str, Json]:
        return self._tools.public_state(self._own())

    def _own(self) -> Server:
        if self._server is None:
            self._server = self._tools.lease(self._start)
            weakref.finalize(self, self._tools.give_back, self._server).atexit = False
        return self._server

    def _refusal(self, call: Call) -> tuple[str, str] | None:
        """What the schema forbids never reaches the server."""
        from jsonschema.exceptions import best_match
        from jsonschema.validators import validator_for

        schema = self._tools.schemas.get(call.name)
        if schema is None:
            return f"error: there is no tool {call.name}", "unknown_tool"
        known = schema.get("properties") or {}
        if unknown := [name for name in call.arguments if name not in known]:
            return f"error: unexpected argument {unknown[0]}", "unexpected_argument"
        error = best_match(validator_for(schema)(schema).iter_errors(json.loads(json.dumps(call.arguments))))
        if error is None:
            return None
        place = f"argument {error.absolute_path[0]}: " if error.absolute_path else ""
        return f"error: {place}{error.message}", _VIOLATIONS.get(error.validator, "invalid_value")


async def _listed(client: Any) -> list[Any]:
    """All pages of `tools/list`."""
    page = await client.list_tools()
    tools = list(page.tools)
    while page.next_cursor:
        page = await client.list_tools(cursor=page.next_cursor)
        tools += page.tools
    return tools


def _stop_all(servers: "weakref.WeakSet[Server]", loop: asyncio.AbstractEventLoop) -> None:
    """Ends every process and then the loop; one that hangs is killed by the SDK within seconds."""
    lives = [server.stop() for server in list(servers)]
    asyncio.run_coroutine_threadsafe(_ended(lives), loop).result(2 * STOP_SECONDS)
    loop.call_soon_threadsafe(loop.stop)


async def _ended(lives: list[asyncio.Task]) -> None:
    if lives:
        await asyncio.wait(lives, timeout=STOP_SECONDS)
