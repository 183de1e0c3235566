"""Which rounds' results were made with other parameters than params.yaml holds now."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from seal.core.errors import ArtifactError
from seal.core.params import load_yaml
from seal.store.files import unlike
from seal.store.lineage import Lineage

_ABSENT = object()


def changed_since(root: Path, lineage: Lineage, envs: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """{round: the first parameter, its own or an ancestor's, that differs from what dvc.lock recorded}.

    `envs`: {environment: what else of it is known to have changed}.

    Rounds that never ran are not in it. Raises ParamError when params.yaml or dvc.lock cannot be read.
    """
    if not (root / "dvc.lock").exists():
        return {}
    now, own = load_yaml(root / "params.yaml"), dict(envs)
    for stage, recorded in _recorded(root / "dvc.lock").items():
        name = stage.partition("@")[2]
        for key, value in recorded.items():
            if _at(now, key) != value:
                own.setdefault(name, key)
    found = {}
    for name, _ in lineage.walk():
        sources = [lineage.entry(lineage.start(name)).env, *lineage.line(name)]
        if key := next((own[source] for source in sources if source in own), ""):
            found[name] = key
    return found


def _recorded(path: Path) -> dict[str, Mapping[str, Any]]:
    """The parameters of each stage as they were when it ran."""
    lock = load_yaml(path)
    told = unlike(lock, dict) or unlike(lock.get("stages", {}), dict, "stages")
    found = {}
    for stage, entry in {} if told else lock.get("stages", {}).items():
        params = entry.get("params", {}) if isinstance(entry, dict) else entry
        found[stage] = params.get("params.yaml", {}) if isinstance(params, dict) else params
        told = told or unlike(found[stage], dict, f"stages.{stage}.params")
    if told:
        raise ArtifactError("dvc.lock", f"{path}: {told}", f"take it from git again: git checkout -- {path}")
    return found


def _at(tree: Any, key: str) -> Any:
    """The value at `a.b.c`."""
    for part in key.split("."):
        tree = tree.get(part, _ABSENT) if isinstance(tree, Mapping) else _ABSENT
    return tree
