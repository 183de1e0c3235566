"""Which rounds' results were made of something else than there is now: other parameters, or outputs since made anew."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from seal.core.errors import ArtifactError
from seal.core.params import load_yaml
from seal.store.files import unlike
from seal.store.lineage import Lineage

_ABSENT = object()
_EMPTY: Mapping[str, Any] = {"params": {}, "deps": [], "outs": []}
_ENTRY = {"params": {}, "deps": [{"path": str}], "outs": [{"path": str}]}


def changed_since(root: Path, lineage: Lineage, envs: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """{round: what has changed since, its own or an ancestor's}: the first parameter that differs from what dvc.lock
    recorded, or else the first path that a stage read before another stage made it anew.

    `envs`: {environment: what else of it is known to have changed}.

    Rounds that never ran are not in it. Raises ParamError when params.yaml or dvc.lock cannot be read.
    """
    if not (root / "dvc.lock").exists():
        return {}
    now, own = load_yaml(root / "params.yaml"), dict(envs)
    stages = _recorded(root / "dvc.lock")
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


def _recorded(path: Path) -> dict[str, Mapping[str, Any]]:
    """What each stage was made of when it ran, and what it made: of its entry `params`, `deps` and `outs`."""
    lock = load_yaml(path)
    told = unlike(lock, {}) or unlike(lock.get("stages", {}), {}, "stages")
    found = {}
    for stage, entry in {} if told else lock.get("stages", {}).items():
        found[stage] = {**_EMPTY, **entry} if isinstance(entry, dict) else entry
        told = told or unlike(found[stage], _ENTRY, f"stages.{stage}")
        told = told or unlike(found[stage]["params"].get("params.yaml", {}), {}, f"stages.{stage}.params")
    if told:
        raise ArtifactError("dvc.lock", f"{path}: {told}", f"take it from git again: git checkout -- {path}")
    return found


def _id(stage: str) -> str:
    """The round, start or environment that a stage is of."""
    return stage.partition("@")[2]


def _at(tree: Any, key: str) -> Any:
    """The value at `a.b.c`."""
    for part in key.split("."):
        tree = tree.get(part, _ABSENT) if isinstance(tree, Mapping) else _ABSENT
    return tree
