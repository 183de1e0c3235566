"""New cues in the words of a model behind an OpenAI-compatible endpoint: off by default, cached, guarded like the rest.

A rewording must hold the words of the cue as they stand, in their order, and add small words alone (see
seal.evolve.rewording); where it does not, the cue stays as its operator wrote it. Answers lie on disk by a hash of the
request, so a stage that is run again asks nothing twice and gives the same bytes.
"""

import json
from collections.abc import Callable
from pathlib import Path

from seal.client.chat import cached, chat
from seal.client.server import Server
from seal.core.types import Json
from seal.interface.state import Item
from seal.settings.rounds import RewriteParams

SYSTEM = (
    "You reword one note of a tool's documentation for a language model that will call the tool. Say the same in one "
    "short sentence. Keep all its words exactly as they stand and in their order, and put only small words such as a, "
    "the, only, use, must, with between and around them. Answer with the sentence alone."
)


def rewriter(params: RewriteParams) -> Callable[[Item], str] | None:
    """The function that rewords an item; None where no model is named. It raises DependencyError without an answer."""
    return (lambda item: ask(params, request_of(params.model, item))) if params.url else None


def request_of(model: str, item: Item) -> dict[str, Json]:
    """The body of a chat completion; equal cues make equal requests."""
    note = {"about": item.target, "kind": item.kind, "note": item.text}
    messages = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": json.dumps(note, ensure_ascii=False)},
    ]
    return {"model": model, "temperature": 0, "messages": messages}


def ask(params: RewriteParams, body: dict[str, Json]) -> str:
    """The answer on one line, from disk where it was asked before."""
    remedy = "start the server, or clear evolve.rewrite.url; what it has answered is kept"
    server = Server.of(params, "evolve.rewrite", remedy)
    answer = cached(
        Path(params.cache), body, str, lambda: chat(server, body, lambda choice: choice["message"].get("content") or "")
    )
    return " ".join(answer.split())
