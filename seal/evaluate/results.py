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

from seal.core.errors import ArtifactError, ParamError
from seal.core.types import Task
from seal.store.files import read_json, write_json
from seal.store.parquet import read_parquet, write_parquet

OUTCOME = ("split", "mode", "task_id", "trial", "success", "progress")
MEND = "take it from git again (`git checkout`), or name another folder"
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
    + [("outcomes", pa.int64()), ("metrics", pa.string())]
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
        of_run = {"digest": r["digest"], "strict": metrics["strict"]["mean"], "outcomes": len(r["outcomes"])}
        runs.append({**key, **of_run, **cost, "metrics": text})
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


def restore(folder: Path, out: Path, wanted: Mapping[tuple[str, int, int], str]) -> int:
    """Give `out` the records that `folder` holds and it lacks; how many. A folder without results gives none.

    A run goes on only where its last policy is kept too, so a restored one that needs more rounds starts anew.

    Args: `wanted` maps (arm, seed, round) to the digest of every record that is asked for. The folder will be written
    anew with these. Raises ParamError when it holds others, which would be lost, ArtifactError when it is damaged.
    """
    if folder.exists() and not folder.is_dir():
        raise ParamError("--results", folder, "name a folder")
    if not (folder / "runs.parquet").exists():
        return 0
    runs = _read(folder / "runs.parquet", RUNS.names)
    for run in runs:
        if wanted.get((run["arm"], run["seed"], run["round"])) != run["digest"]:
            told = f"{folder} holds {run['arm']}, seed {run['seed']}, round {run['round']}"
            remedy = "these arms, seeds, rounds and parameters do not make it, so it would be lost: name another folder"
            raise ParamError("--results", told, remedy)
    outcomes: dict[tuple[Any, ...], list[list[Any]]] = defaultdict(list)
    pulled: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    for row in _read(folder / "outcomes.parquet", ("arm", "seed", "round", *OUTCOME)):
        outcomes[row["arm"], row["seed"], row["round"]].append([row[name] for name in OUTCOME])
    for row in _read(folder / "labels.parquet", LABELS.names):
        if row["pull"] is not None:
            pulled[row["arm"], row["seed"], row["round"]][row["label"]] = row["pull"]
    restored = 0
    for run in runs:
        key = run["arm"], run["seed"], run["round"]
        path = out / run["arm"] / f"s{run['seed']}" / f"r{run['round']}.json"
        if len(outcomes[key]) != run["outcomes"]:
            told = f"{folder}: {len(outcomes[key])} of {run['outcomes']} outcomes of {' '.join(map(str, key))}"
            raise ArtifactError("results", told, MEND)
        if not path.exists() or read_json(path).get("digest") != run["digest"]:
            metrics = json.loads(run["metrics"])
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, record(run["digest"], metrics, pulled[key], outcomes[key]))
            restored += 1
    return restored


def _read(path: Path, names: Sequence[str]) -> list[dict[str, Any]]:
    table = read_parquet(path)
    if missing := [name for name in names if name not in table.column_names]:
        raise ArtifactError("results", f"{path} has no column {missing[0]}", MEND)
    return table.select(list(names)).to_pylist()


def record(
    digest: str, metrics: Mapping[str, Any], pulled: Mapping[str, float], outcomes: Sequence[Sequence[Any]]
) -> dict[str, Any]:
    """What is kept of a round of a run; `outcomes`: a list of OUTCOME a held-out rollout."""
    return {"digest": digest, "metrics": dict(metrics), "pull": dict(pulled), "outcomes": list(outcomes)}
