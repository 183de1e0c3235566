"""A user played by a served model: the official simulator's messages over plain HTTP, every answer kept on disk.

An answer is kept under the hash of the whole request (model, messages, tools, temperature, seed), so a conversation
that has been held once is held again to the byte, without a server.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seal.client.completions import Unanswered, completion
from seal.core.errors import ArtifactError, ParamError
from seal.core.types import Call, Json
from seal.env.tau2.package import text as data_text
from seal.env.tau2.user import Act, UserFailed
from seal.store.files import read_record

GREETING = "Hi! How can I help you today?"  # the official agents' first message, said for every policy
KEY_VARIABLE = "OPENAI_API_KEY"  # sent as a bearer token where it is set, never stored
MAX_ACTS = 20  # tool calls in a row before the user must speak
TRIES = 3


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible server. `url` is what `/chat/completions` follows. Raises ParamError for no http(s) URL."""

    url: str
    model: str
    cache: Path
    temperature: float = 0.0
    timeout: float = 60.0  # seconds of silence

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise ParamError("envs.tau2.url", self.url or "empty", "give the server, such as http://localhost:8000/v1")
        if not self.model:
            raise ParamError("envs.tau2.model", "empty", "name the model that the server offers")

    def message(self, request: Json) -> Json:
        """The assistant message that answers `request`, kept or asked for. Raises UserFailed, ArtifactError."""
        body = json.dumps(request, sort_keys=True)
        path = self.cache / f"{hashlib.sha256(body.encode()).hexdigest()}.json"
        if path.exists():
            return read_record(path, {"message": {"content": object}})["message"]
        message = self._asked(body)
        _keep(path, {"request": request, "message": message})
        return message

    def _asked(self, body: str) -> Json:
        for attempt in range(TRIES):
            try:
                return _message_of(completion(self.url, body.encode(), os.environ.get(KEY_VARIABLE, ""), self.timeout))
            except Unanswered as error:
                if attempt == TRIES - 1 or not error.passing:
                    raise UserFailed(str(error)) from None
        raise AssertionError


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


def _message_of(message: Json) -> Json:
    """What is kept of a message: who spoke is known, so content or tool calls. Raises UserFailed for anything else."""
    try:
        content, called = message.get("content"), message.get("tool_calls") or []
        tool_calls = [
            {
                "id": str(call["id"]),
                "type": "function",
                "function": {"name": call["function"]["name"], "arguments": call["function"]["arguments"] or "{}"},
            }
            for call in called
        ]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UserFailed(f"no chat completion: {type(error).__name__}: {error}") from None
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


def _keep(path: Path, value: Json) -> None:
    """Whole or not at all, whoever else writes the same."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".part", delete=False, encoding="utf-8") as out:
            json.dump(value, out, sort_keys=True, indent=1)
        os.replace(out.name, path)
    except OSError as error:
        raise ArtifactError("kept answer of the user", f"{path}: {error}", "make the folder writable") from None
