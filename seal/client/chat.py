"""Chat completions of an OpenAI-compatible server, and answers that are kept on disk."""

import hashlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from seal.client.server import Server, ServerParams, json_object
from seal.core.types import Json
from seal.store.files import read_record, write_json

T = TypeVar("T")


class ModelParams(ServerParams, Protocol):
    """Parameters of a model whose answers are kept below a folder `cache`."""

    cache: str


def request_of(model: str, system: str, user: str) -> dict[str, Json]:
    """The body of a chat completion at temperature 0: equal texts make equal requests."""
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    return {"model": model, "temperature": 0, "messages": messages}


def cached_text(params: ModelParams, request: dict[str, Json], name: str, remedy: str) -> str:
    """The text that a model answers, from disk where it was asked before. Raises NoAnswer, with `name` and `remedy`."""
    server = Server.of(params, name, remedy)

    def ask() -> str:
        return chat(server, request, lambda choice: str(choice["message"]["content"] or ""))

    return cached(Path(params.cache), request, str, ask)


def chat(server: Server, request: dict[str, Json], read: Callable[[dict[str, Any]], T]) -> T:
    """What `read` makes of the first choice ({message, finish_reason}) that answers `request`, a chat completion's.

    `read` may raise one of server.NOT_READ where the choice is not as it should be. Raises NoAnswer.
    """
    return server.ask(
        "chat/completions", request, read=lambda body: read(json_object(body)["choices"][0]), what="chat completion"
    )


def cached(folder: Path, request: Json, shape: Any, ask: Callable[[], T]) -> T:
    """The answer to `request`: from `folder` where it was asked before, else from `ask`, and kept there.

    A file is named by the SHA-256 of the request as JSON with sorted keys and holds {request, answer}. Older files are
    read, too: those named by BLAKE2b, and those that call the answer `message`. Raises ArtifactError where a file is
    damaged or its answer is not of `shape` (see seal.store.files), and what `ask` raises; nothing is kept then.
    """
    text = json.dumps(request, sort_keys=True).encode()
    path = folder / f"{hashlib.sha256(text).hexdigest()}.json"
    older = folder / f"{hashlib.blake2b(text, digest_size=16).hexdigest()}.json"
    for known in (path, older):
        if known.exists():
            field = "message" if "message" in read_record(known) else "answer"
            return read_record(known, {field: shape})[field]
    answer = ask()
    own = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")  # others may be told the same at the same time
    write_json(own, {"request": request, "answer": answer})
    os.replace(own, path)
    return answer
