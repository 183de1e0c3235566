"""The results of an experiment as a folder of Parquet files to commit, and a run's records out of it again.

summary.parquet    a row per arm and round (see seal.evaluate.summary)
runs.parquet       one per arm, seed and round: what it was (digest), what it cost, its metrics as JSON text
labels.parquet     one per label: its share of bare test turns, and of what training pulled (see seal.train.pull)
outcomes.parquet   one per held-out rollout
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from seal.core.types import Task
from seal.store.files import write_json
from seal.store.parquet import read_parquet, write_parquet

OUTCOME = ("split", "mode", "task_id", "trial", "success", "progress")
COST = ("rollouts", "tokens", "updates")
RUNS = pa.schema(
    [
        ("arm", pa.string()),
        ("seed", pa.int64()),
        ("round", pa.int64()),
        ("digest", pa.string()),
        ("strict", pa.float64()),
    ]
    + [(name, pa.int64()) for name in COST]
    + [("metrics", pa.string())]
)
LABELS = pa.schema(
    [("arm", pa.string()), ("seed", pa.int64()), ("round", pa.int64()), ("label", pa.string())]
    + [("rate", pa.float64()), ("pull", pa.float64())]
)


def write_results(
    folder: Path, rows: Sequence[Mapping[str, Any]], records: Sequence[Mapping[str, Any]], tasks: Mapping[str, Task]
) -> None:
    """Write the four tables: `rows` of seal.evaluate.summary.summarise, `records` of seal.evaluate.experiment."""
    folder.mkdir(parents=True, exist_ok=True)
    runs, labels, outcomes = [], [], []
    for r in records:
        key = {"arm": r["arm"], "seed": r["seed"], "round": r["depth"]}
        metrics, rates, pulled = r["metrics"], r["metrics"].get("labels", {}), r["pull"]
        cost = {name: metrics["total"][name] for name in COST}
        text = json.dumps(metrics, sort_keys=True)
        runs.append({**key, "digest": r["digest"], "strict": metrics["strict"]["mean"], **cost, "metrics": text})
        for label in sorted({*rates, *pulled}):
            labels.append({**key, "label": label, "rate": rates.get(label), "pull": pulled.get(label)})
        for outcome in r["outcomes"]:
            row = dict(zip(OUTCOME, outcome, strict=True))
            task = tasks[row["task_id"]]
            outcomes.append({**key, **row, "scenario_id": task.scenario_id, "category": task.category})
    write_parquet(folder / "runs.parquet", pa.Table.from_pylist(runs, RUNS))
    write_parquet(folder / "labels.parquet", pa.Table.from_pylist(labels, LABELS))
    write_parquet(folder / "outcomes.parquet", pa.Table.from_pylist(outcomes))
    write_parquet(folder / "summary.parquet", pa.Table.from_pylist(list(rows)))


def write_transfer(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    found: Sequence[Mapping[str, Any]],
    scenarios: Mapping[str, Mapping[str, str]],
) -> None:
    """transfer.parquet: a row per destination and arm; transfer_outcomes.parquet: one per held-out rollout.

    Args: see seal.evaluate.transfer. A destination "" is home.
    """
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = []
    for f in found:
        key = {"to": f["to"], "arm": f["arm"], "seed": f["seed"], "round": f["depth"]}
        for outcome in f["outcomes"]:
            row = dict(zip(OUTCOME, outcome, strict=True))
            outcomes.append({**key, **row, "scenario_id": scenarios[f["to"]][row["task_id"]]})
    write_parquet(folder / "transfer.parquet", pa.Table.from_pylist(list(rows)))
    write_parquet(folder / "transfer_outcomes.parquet", pa.Table.from_pylist(outcomes))


def restore(folder: Path, out: Path) -> int:
    """Give `out` the records that `folder` holds and it does not; how many. A folder without results gives none.

    A run goes on only where its last policy is kept too, so a restored one that needs more rounds starts anew.
    """
    if not (folder / "runs.parquet").exists():
        return 0
    outcomes: dict[tuple[Any, ...], list[list[Any]]] = defaultdict(list)
    pulled: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    for row in read_parquet(folder / "outcomes.parquet").to_pylist():
        outcomes[row["arm"], row["seed"], row["round"]].append([row[name] for name in OUTCOME])
    for row in read_parquet(folder / "labels.parquet").to_pylist():
        if row["pull"] is not None:
            pulled[row["arm"], row["seed"], row["round"]][row["label"]] = row["pull"]
    restored = 0
    for run in read_parquet(folder / "runs.parquet").to_pylist():
        key = run["arm"], run["seed"], run["round"]
        path = out / run["arm"] / f"s{run['seed']}" / f"r{run['round']}.json"
        if not path.exists():
            metrics = json.loads(run["metrics"])
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, record(run["digest"], metrics, pulled[key], outcomes[key]))
            restored += 1
    return restored


def record(
    digest: str, metrics: Mapping[str, Any], pulled: Mapping[str, float], outcomes: Sequence[Sequence[Any]]
) -> dict[str, Any]:
    """What is kept of a round of a run; `outcomes`: a list of OUTCOME a held-out rollout."""
    return {"digest": digest, "metrics": dict(metrics), "pull": dict(pulled), "outcomes": list(outcomes)}
