"""Policies: nano (shipped, trained in full), hf (transformers + LoRA), endpoint, scripted. `load_policy` opens any."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from seal.core.errors import ArtifactError
from seal.policy.base import Policy
from seal.store.files import read_json

# call formats that policy.json need not tell
FORMATS = {"nano": "words", "scripted": "words", "hf": "qwen_xml", "endpoint": "qwen_xml"}


def look_at(path: Path) -> Any:
    """A policy that need not play: its `format` alone where policy.json tells enough; then no heavy library loads."""
    found = read_json(path / "policy.json", dict)
    if found.get("kind") not in FORMATS:
        return load_policy(path)
    return SimpleNamespace(format=found.get("format") or FORMATS[found["kind"]])


def load_policy(path: Path) -> Policy:
    """Open a policy directory by the `kind` in its policy.json; each kind's libraries load only here."""
    import json

    try:
        spec = json.loads((path / "policy.json").read_text())
        kind = spec["kind"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        said = error.strerror if isinstance(error, OSError) else "its policy.json is no JSON object with a kind"
        remedy = "run the stage that writes it, or `dvc checkout`, `dvc pull`"
        raise ArtifactError("policy directory", f"{path}: {said}", remedy) from None
    if kind == "nano":
        from seal.policy.nano import load_nano

        return load_nano(path)
    if kind == "hf":
        from seal.policy.hf import load_hf

        return load_hf(path)
    if kind == "endpoint":
        from seal.policy.endpoint import load_endpoint

        return load_endpoint(path)
    if kind == "scripted":
        from seal.policy.scripted import load_scripted

        return load_scripted(path)
    raise ArtifactError("policy kind", f"{path}: {kind}", "known kinds: nano, hf, endpoint, scripted")
