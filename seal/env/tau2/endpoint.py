"""A user played by a served model: the official simulator's messages over plain HTTP, every answer kept on disk.

An answer is kept under the hash of the whole request (model, messages, tools, temperature, seed), so a conversation
that has been held once is held again to the byte, without a server.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seal.client.chat import cached, chat
from seal.client.server import NoAnswer, Server
from seal.core.errors import ParamError
from seal.core.types import Call, Json
from seal.env.tau2.package import text as data_text
from seal.env.tau2.user import Act, UserFailed

GREETING = "Hi! How can I help you today?"  # the official agents' first message, said for every policy
KEY_VARIABLE = "OPENAI_API_KEY"  # sent as a bearer token where it is set, never stored
MAX_ACTS = 20  # tool calls in a row before the user must speak


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible server. `url` is what `/chat/completions` follows. Raises ParamError for no http(s) URL."""

    url: str
    model: str
    cache: Path
    temperature: float = 0.0
    timeout: float = 60.0  # seconds of silence

    def __post_init__(self) -> None:
        self._server()
        if not self.model:
            raise ParamError("envs.tau2.model", "empty", "name the model that the server offers")

    def message(self, request: Json) -> Json:
        """The assistant message that answers `request`, from disk or asked for. Raises UserFailed, ArtifactError."""
        return cached(self.cache, request, {"content": object}, lambda: self._ask(request))

    def _ask(self, request: Json) -> Json:
        try:
            return chat(self._server(), request, _message_of)
        except NoAnswer as error:
            raise UserFailed(error.reason) from None

    def _server(self) -> Server:
        key_env = KEY_VARIABLE if os.environ.get(KEY_VARIABLE, "").strip() else ""
        return Server(self.url, key_env, self.timeout, "user of tau2")


class EndpointUser:
    """One conversation's user. `instructions`: the scenario as text; `tools`: OpenAI schemas of the user's tools."""

    greeting = (GREETING,)

    def __init__(self, endpoint: Endpoint, instructions: str, tools: Sequence[Json], seed: int):
        self._endpoint, self._tools, self._seed = endpoint, list(tools), seed
        guide = data_text("user_simulator", f"simulation_guidelines{'_tools' if tools else ''}.md")
        system = f"{guide}\n\n<scenario>\n{instructions}\n</scenario>".strip()
        self._messages: list[Json] = [{"role": "system", "content": system}]

    def answer(self, text: str, act: Act) -> str:
        self._messages.append({"role": "user", "content": text})
        for _ in range(MAX_ACTS):
            message = self._endpoint.message(self._request())
            self._messages.append(message)
            if not message.get("tool_calls"):
                return message["content"]
            for called in message["tool_calls"]:
                result = act(_call_of(called))
                self._messages.append({"role": "tool", "tool_call_id": called["id"], "content": result})
        raise UserFailed(f"{MAX_ACTS} messages of tool calls in a row")

    def _request(self) -> Json:
        request: dict[str, Json] = {
            "model": self._endpoint.model,
            "messages": self._messages,
            "temperature": self._endpoint.temperature,
            "seed": self._seed,
        }
        return request | ({"tools": self._tools, "tool_choice": "auto"} if self._tools else {})


def _message_of(choice: Json) -> Json:
    """What is kept of a message: who spoke is known, so content or tool calls. Raises UserFailed for an empty one."""
    message = choice["message"]
    content = message.get("content")
    tool_calls = []
    for call in message.get("tool_calls") or []:
        function = {"name": call["function"]["name"], "arguments": call["function"]["arguments"] or "{}"}
        tool_calls.append({"id": str(call["id"]), "type": "function", "function": function})
    if tool_calls:
        return {"role": "assistant", "content": content or "", "tool_calls": tool_calls}
    if not isinstance(content, str) or not content.strip():
        raise UserFailed("an empty answer")
    return {"role": "assistant", "content": content}


def _call_of(called: Json) -> Call:
    try:
        arguments = json.loads(called["function"]["arguments"])
    except (ValueError, TypeError) as error:
        raise UserFailed(f"arguments that are no JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise UserFailed("arguments that are no object")
    return Call(called["function"]["name"], arguments)
