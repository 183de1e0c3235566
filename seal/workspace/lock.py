"""dvc.lock: what each stage was made of when it last ran and what it made, and which results are older than that."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from seal.core.errors import ArtifactError, ParamError
from seal.settings.params import load_yaml
from seal.workspace.lineage import Lineage

_ABSENT = object()
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


def changed_since(root: Path, lineage: Lineage, envs: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """{round: what has changed since, its own or an ancestor's}: the first parameter that differs from what dvc.lock
    recorded, or else the first path that a stage read before another stage made it anew.

    `envs`: {environment: what else of it is known to have changed}.

    Rounds that never ran are not in it. Raises ParamError when params.yaml, ArtifactError when dvc.lock cannot be read.
    """
    if not (stages := recorded(root)):
        return {}
    now, own = load_yaml(root / "params.yaml"), dict(envs)
    for stage, entry in stages.items():
        for key, value in entry["params"].get("params.yaml", {}).items():
            if _at(now, key) != value:
                own.setdefault(_id(stage), key)
    made = {out["path"]: out.get("md5") for entry in stages.values() for out in entry["outs"]}
    for stage, entry in stages.items():
        for dep in entry["deps"]:
            if dep["path"] in made and made[dep["path"]] != dep.get("md5"):
                own.setdefault(_id(stage), dep["path"])
    found = {}
    for name, _ in lineage.walk():
        sources = [lineage.entry(lineage.start(name)).env, *lineage.line(name)]
        if key := next((own[source] for source in sources if source in own), ""):
            found[name] = key
    return found


def _id(stage: str) -> str:
    """The round, start or environment that a stage is of."""
    return stage.partition("@")[2]


def _at(tree: Any, key: str) -> Any:
    """The value at `a.b.c`."""
    for part in key.split("."):
        tree = tree.get(part, _ABSENT) if isinstance(tree, Mapping) else _ABSENT
    return tree
