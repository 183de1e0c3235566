"""dvc.lock: what each stage was made of when it last ran, and what it made."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seal.core.errors import ArtifactError, ParamError
from seal.settings.params import load_yaml

_EMPTY: Mapping[str, Any] = {"params": {}, "deps": [], "outs": []}


def recorded(root: Path) -> dict[str, Mapping[str, Any]]:
    """{stage: its `params`, `deps` and `outs`}; nothing where no stage ever ran.

    Raises ArtifactError for a file that DVC would not read: it is held against DVC's own schema.
    """
    path = root / "dvc.lock"
    if not path.exists():
        return {}
    from dvc.schema import COMPILED_LOCKFILE_SCHEMA
    from voluptuous import Invalid

    try:
        lock = COMPILED_LOCKFILE_SCHEMA(load_yaml(path))
    except ParamError as error:
        fault = error.value
    except Invalid as error:
        fault = f"{path}: {error}"
    else:
        return {stage: {**_EMPTY, **entry} for stage, entry in lock.get("stages", {}).items()}
    raise ArtifactError("dvc.lock", fault, f"take it from git again: git checkout -- {path}")
