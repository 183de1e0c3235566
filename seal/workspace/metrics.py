"""metrics.json of a round, checked as far as everyone reads it."""

from pathlib import Path
from typing import Any

from seal.core.errors import mended_by
from seal.store.files import NUMBER, read_json
from seal.workspace.lineage import path_of


def read_metrics(root: Path, round_id: str) -> dict[str, Any] | None:
    """metrics.json of a round, None when it has not been evaluated. Raises ArtifactError for a broken or lost file."""
    path = path_of(root, round_id, "metrics.json")
    if not path.exists() and not path_of(root, round_id, "evaluate").is_dir():
        return None
    with mended_by(f"take it from git again: git checkout -- {path}; or run the round again"):
        return read_json(path, {"strict": dict.fromkeys(("mean", "low", "high"), NUMBER)})
