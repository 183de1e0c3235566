"""What a report reads: the finished rounds of a workspace, their metrics, interfaces and tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seal.core.errors import ArtifactError
from seal.core.types import Json
from seal.interface.state import InterfaceState, Item, load_interface
from seal.store.tables import read_table
from seal.workspace.lineage import read_metrics

Row = dict[str, Json]
NO_COST = {"rollouts": 0, "tokens": 0, "updates": 0}


@dataclass(frozen=True, slots=True)
class Round:
    """A start or a round with its metrics.json (see seal.evaluate.metrics) and the interface it left behind."""

    id: str
    parent: str
    depth: int
    folder: Path
    metrics: Mapping[str, Any]
    interface: InterfaceState

    def rows(self, table: str, stage: str = "evaluate") -> list[Row]:
        """Rows of a table of one of the round's stages; none where the stage wrote no such table."""
        path = self.folder / stage / f"{table}.parquet"
        return read_table(path, table).to_pylist() if path.exists() else []


def load_rounds(root: Path) -> list[Round]:
    """Every evaluated round, parents before children, a line of descent at a stretch.

    Raises ArtifactError when there is none, or when metrics are broken.
    """
    rounds: dict[str, Round] = {}
    for folder in sorted((root / "data" / "rounds").glob("*/")):
        id_, found = folder.name, read_metrics(root, folder.name)
        if found is None:
            continue
        interface = load_interface(folder / "interface.json") if _is_here(folder) else InterfaceState()
        known = {"total": NO_COST, "interface": {"active": len(interface.active), "added": 0, "retired": 0}}
        metrics = {**known, **found, "strict": {"n": 1, **found["strict"]}}
        rounds[id_] = Round(id_, found.get("parent", ""), found.get("depth", 0), folder, metrics, interface)
    if not rounds:
        raise ArtifactError(
            "metrics", root / "data" / "rounds", "nothing is evaluated yet: run `make demo` or `seal run`"
        )
    ordered: list[Round] = []
    waiting = [r for r in rounds.values() if r.parent not in rounds][::-1]
    while waiting:
        ordered.append(here := waiting.pop())
        waiting += [r for r in rounds.values() if r.parent == here.id][::-1]
    return ordered


def _is_here(folder: Path) -> bool:
    """Whether a round has more than the metrics that git brings: a fresh clone knows scores of rounds it never ran."""
    return any(path.name != "metrics.json" for path in folder.iterdir())


def lineages(rounds: list[Round]) -> list[list[Round]]:
    """From a start to each round without children, in the order of the rounds."""
    by_id, parents = {r.id: r for r in rounds}, {r.parent for r in rounds}
    paths = []
    for leaf in (r for r in rounds if r.id not in parents):
        path = [leaf]
        while path[-1].parent in by_id:
            path.append(by_id[path[-1].parent])
        paths.append(path[::-1])
    return paths


def diff(before: InterfaceState, after: InterfaceState) -> tuple[list[Item], list[Item], int]:
    """(added, removed, kept) active items, sorted by target."""
    old, new = ({item.id: item for item in state.active} for state in (before, after))

    def only(here: Mapping[str, Item], there: Mapping[str, Item]) -> list[Item]:
        return sorted((i for id_, i in here.items() if id_ not in there), key=lambda i: (i.target, i.kind, i.text))

    return only(new, old), only(old, new), len(old.keys() & new.keys())
