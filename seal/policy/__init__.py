"""Policies: nano (shipped, trained in full), hf (transformers + LoRA), endpoint, scripted. `base` says what one is.

`load_policy` opens any, `start` makes the one that a line of rounds begins with. What generates and trains (torch)
loads only when a policy does.
"""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from seal.core.errors import ArtifactError
from seal.interface.wording import count_words
from seal.policy.base import Policy
from seal.store.files import read_json

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = ["base", "counter_of", "faults", "load_policy", "nano", "nano_model"]
__all__ += ["optim", "policy_info", "scripted", "shards", "start"]

# call formats that policy.json need not tell
FORMATS = {"nano": "words", "hf": "qwen_xml", "endpoint": "qwen_xml", "scripted": "words"}


class PolicyInfo:
    """A policy that does not play: its call `format`, and its `codec` where that is more than words (hf)."""

    def __init__(self, path: Path, kind: str, call_format: str):
        self._path, self._kind, self.format = path, kind, call_format

    @cached_property
    def codec(self) -> Any:
        if self._kind != "hf":
            return None
        from seal.policy.hf import codec_at

        return codec_at(self._path)


def policy_info(path: Path) -> Any:
    """A policy that need not play, as a PolicyInfo where policy.json tells enough; then no model loads."""
    found = read_json(path / "policy.json", dict)
    if found.get("kind") not in FORMATS:
        return load_policy(path)
    return PolicyInfo(path, found["kind"], found.get("format") or FORMATS[found["kind"]])


def counter_of(policy: Any) -> Callable[[str], int]:
    """How the tokens of a cue are counted: as the policy's codec counts, in words where it has none."""
    return policy.codec.count if policy.codec else count_words


def load_policy(path: Path) -> Policy:
    """Open a policy directory by the `kind` in its policy.json; each kind's libraries load only here."""
    import json

    try:
        spec = json.loads((path / "policy.json").read_text())
        kind = spec["kind"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        fault = error.strerror if isinstance(error, OSError) else "its policy.json is no JSON object with a kind"
        remedy = "run the stage that writes it, or `dvc checkout`, `dvc pull`"
        raise ArtifactError("policy directory", f"{path}: {fault}", remedy) from None
    if kind not in FORMATS:
        raise ArtifactError("policy kind", f"{path}: {kind}", f"known kinds: {', '.join(FORMATS)}")
    return resolve_name(f"seal.policy.{kind}:load_{kind}")(path)
