"""metrics.json of a round, checked as far as everyone reads it."""

import json
from pathlib import Path
from typing import Any

from seal.core.errors import ArtifactError
from seal.store.lineage import path_of


def read_metrics(root: Path, round_id: str) -> dict[str, Any] | None:
    """metrics.json of a round, None when it has not been evaluated. Raises ArtifactError for a broken file."""
    path = path_of(root, round_id, "metrics.json")
    try:
        found = json.loads(path.read_text())
        for name in ("mean", "low", "high"):
            float(found["strict"][name])
        return found
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, LookupError) as error:
        raise ArtifactError("metrics", f"{path}: {error!r}", "git checkout it, or run the round again") from None
