"""endpoint: any model behind an OpenAI-compatible server. It plays and is measured; its weights are not here.

It reads what the hf policies read (tools as one line each, calls as JSON in <tool_call> tags), as chat messages. Every
answer is kept under the hash of its whole request, so an episode that was played once is played again to the byte,
without a server. Its "tokens" are the bytes of the messages: what it samples them in is the server's affair.
"""

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from seal.client.chat import cached, chat
from seal.client.server import NoAnswer, Server
from seal.core.errors import ArtifactError, ParamError
from seal.core.types import Call, Json, ToolDoc
from seal.policy.base import Action, Limits, Observation, Policy
from seal.policy.chat import CUT, result_message, system_message, user_message
from seal.policy.sampling import request_seed
from seal.settings.policies import EndpointParams
from seal.settings.typed import read
from seal.tools.parse import format_calls

SYSTEM, USER, ASSISTANT, END = range(256, 260)  # behind the bytes
ROLES = {SYSTEM: "system", USER: "user", ASSISTANT: "assistant"}


class ByteCodec:
    """Messages as UTF-8 bytes between markers of their roles: `messages` is the way back."""

    format = "qwen_xml"

    def __init__(self, max_result_chars: int = 2000, max_doc_words: int = 64):
        self.max_result_chars, self.max_doc_words = max_result_chars, max_doc_words

    def prompt(self, docs: Sequence[ToolDoc], hints: Sequence[str]) -> list[int]:
        return [SYSTEM, *system_message(docs, hints, self.max_doc_words).encode()]

    def user(self, message: str, revealed: Sequence[ToolDoc]) -> list[int]:
        return [USER, *user_message(message, revealed, self.max_doc_words).encode(errors="replace"), ASSISTANT]

    def results(self, shown: Sequence[str]) -> list[int]:
        return [USER, *result_message([self.cut(text) for text in shown]).encode(errors="replace"), ASSISTANT]

    def decode(self, ids: Sequence[int]) -> str:
        return bytes(i for i in ids if i < 256).decode(errors="replace")

    def encode_action(self, text: str) -> list[int]:
        return [*text.encode(errors="replace"), END]

    def count(self, text: str) -> int:
        return len(text.split())

    def cut(self, text: str) -> str:
        """`text` without its middle when it is longer than `max_result_chars`: recovery texts stand at the end."""
        if len(text) <= self.max_result_chars:
            return text
        tail = self.max_result_chars // 3
        return text[: self.max_result_chars - tail] + CUT + text[-tail:]

    def messages(self, ids: Sequence[int]) -> list[dict[str, str]]:
        """The chat so far; the open place of the assistant is none."""
        places = [i for i, token in enumerate(ids) if token in ROLES]
        parts = zip(places, [*places[1:], len(ids)], strict=True)
        found = [{"role": ROLES[ids[start]], "content": self.decode(ids[start + 1 : stop])} for start, stop in parts]
        return found[:-1] if ids and ids[-1] == ASSISTANT else found


class EndpointPolicy(Policy):
    """Policy behind a server. Raises ParamError for no http(s) URL, DependencyError when no answer comes."""

    name = "endpoint"

    def __init__(self, params: EndpointParams):
        remedy = "start the server, or mend url, model and key; what was answered is kept"
        self.server = Server.of(params, "endpoint policy", remedy)
        if not params.model:
            raise ParamError("policy.model", "empty", "name the model that the server offers")
        self.params, self.codec = params, ByteCodec(params.max_result_chars, params.max_doc_words)
        self.format = self.codec.format

    @property
    def hash(self) -> str:
        """Of the model's name and of how it is asked; not of where it is served."""
        decides = [self.params.model, self.params.max_result_chars, self.params.max_doc_words]
        digest = hashlib.blake2b(json.dumps(decides).encode(), digest_size=8)
        return f"endpoint:{digest.hexdigest()}"

    def act(self, observations: Sequence[Observation], temperature: float, limits: Limits) -> list[Action]:
        """See `Policy.act`. `limits.context` is the server's affair: a request too long for it overflows."""
        with ThreadPoolExecutor(self.params.parallel) as pool:
            return list(pool.map(lambda o: self._act(o, temperature, limits), observations))

    def save(self, path: Path) -> None:
        path.mkdir(parents=True, exist_ok=True)
        about = {**self.params.model_dump(), "hash": self.hash, "format": self.format}
        (path / "policy.json").write_text(json.dumps(about, indent=2, sort_keys=True) + "\n")

    def _act(self, o: Observation, temperature: float, limits: Limits) -> Action:
        seed = request_seed(o.seed, o.turn, o.step)
        sampler = {"temperature": temperature, "max_tokens": limits.max_action_tokens, "seed": seed}
        answer = self._answer({"model": self.params.model, "messages": self.codec.messages(o.ids), **sampler})
        if answer["finish"] == "overflow":
            return Action("", finish="overflow")
        stopped = answer["finish"] != "length"
        ids = self.codec.encode_action(answer["text"])[: None if stopped else -1]
        return Action(answer["text"], tuple(ids), (0.0,) * len(ids), "stop" if stopped else "length")

    def _answer(self, request: dict[str, Json]) -> dict[str, str]:
        """{text, finish} of the answer, from disk or from the server."""
        shape = {"text": str, "finish": str}
        return cached(Path(self.params.cache), request, shape, lambda: self._ask(request))

    def _ask(self, request: dict[str, Json]) -> dict[str, str]:
        try:
            return chat(self.server, request, _text_and_finish)
        except NoAnswer as error:
            if "context" in error.reply and "length" in error.reply:  # vLLM, llama.cpp, OpenAI each say it so
                return {"text": "", "finish": "overflow"}
            raise


def _text_and_finish(choice: dict[str, Any]) -> dict[str, str]:
    """The text of a chat completion; calls that a server took out of it are put back."""
    message = choice["message"]
    functions = [call["function"] for call in message.get("tool_calls") or ()]
    calls = [Call(function["name"], json.loads(function["arguments"] or "{}")) for function in functions]
    text = format_calls(tuple(calls), ByteCodec.format) if calls else message["content"] or ""
    return {"text": str(text), "finish": str(choice.get("finish_reason"))}


def load_endpoint(path: Path) -> EndpointPolicy:
    """Open a policy directory. Raises ArtifactError when its policy.json is not one of an endpoint."""
    try:
        about = json.loads((path / "policy.json").read_text())
        known = EndpointParams.model_fields
        policy = EndpointPolicy(read(EndpointParams, {k: v for k, v in about.items() if k in known}, "policy"))
        recorded = about["hash"]
    except (OSError, ValueError, KeyError, ParamError) as error:
        raise ArtifactError("endpoint policy", f"{path}: {error}", "restore it with `dvc checkout`") from None
    if policy.hash != recorded:
        raise ArtifactError("endpoint policy", f"{path}: hash {policy.hash}, recorded {recorded}", "dvc checkout")
    return policy
