"""New cues in the words of a model behind an OpenAI-compatible endpoint: off by default, cached, guarded like the rest.

A rewording must hold the words of the cue as they stand, in their order, and add small words alone (see
seal.evolve.paraphrase); where it does not, the cue stays as its operator wrote it. Answers lie on disk by a hash of the
request, so a stage that is run again asks nothing twice and gives the same bytes.
"""

import json
from collections.abc import Callable

from seal.client.chat import cached_text, request_of
from seal.interface.state import Item
from seal.settings.evolve import RewriteParams

SYSTEM = (
    "You reword one note of a tool's documentation for a language model that will call the tool. Say the same in one "
    "short sentence. Keep all its words exactly as they stand and in their order, and put only small words such as a, "
    "the, only, use, must, with between and around them. Answer with the sentence alone."
)


def rewriter(params: RewriteParams) -> Callable[[Item], str] | None:
    """The function that rewords an item; None where no model is named. It raises DependencyError without an answer."""
    return (lambda item: _reworded(params, item)) if params.url else None


def _reworded(params: RewriteParams, item: Item) -> str:
    """The answer on one line. Equal cues make equal requests."""
    note = {"about": item.target, "kind": item.kind, "note": item.text}
    request = request_of(params.model, SYSTEM, json.dumps(note, ensure_ascii=False))
    remedy = "start the server, or clear evolve.rewrite.url; what it has answered is kept"
    return " ".join(cached_text(params, request, "evolve.rewrite", remedy).split())
