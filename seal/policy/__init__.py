"""Policies: nano (shipped, trained in full), hf (transformers + LoRA), endpoint, scripted. `load_policy` opens any."""

from pathlib import Path

from seal.core.errors import ArtifactError
from seal.policy.base import Policy


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
