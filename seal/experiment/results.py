"""The results of an experiment as a folder of Parquet files to commit, and a run's records out of it again.

summary.parquet    a row per arm and round (see seal.experiment.summary)
runs.parquet       one per arm, seed and round: what it was (digest), what it cost, its metrics as JSON text
labels.parquet     one per label: its share of bare test turns, and of what training pulled (seal.train.label_shares)
outcomes.parquet   one per held-out rollout
"""

import json
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from seal.core.errors import ArtifactError, ParamError, mended_by
from seal.core.types import Task
from seal.store.files import NUMBER, new_folder, read_record, shape_error, write_json
from seal.store.parquet import read_parquet, write_parquet

OUTCOME = ("split", "mode", "task_id", "trial", "success", "progress")
COST = ("rollouts", "tokens", "updates")
_RUN = [("arm", pa.string()), ("seed", pa.int64()), ("round", pa.int64())]
RUNS = pa.schema(
    [*_RUN, ("digest", pa.string()), ("strict", pa.float64())]
    + [(name, pa.int64()) for name in (*COST, "outcomes")]
    + [("metrics", pa.string())]
)
LABELS = pa.schema([*_RUN, ("label", pa.string()), ("rate", pa.float64()), ("pull", pa.float64())])
OUTCOMES = pa.schema(
    [*_RUN, ("split", pa.string()), ("mode", pa.string()), ("task_id", pa.string()), ("trial", pa.int64())]
    + [("success", pa.bool_()), ("progress", pa.float64())]
)
ESTIMATES = (
    *("dev", "on", "strict", "gain", "margin", "behind"),
    *("progress", "progress_gain", "progress_margin", "progress_behind"),
)
SUMMARY = pa.schema(
    [("arm", pa.string()), ("depth", pa.int64()), ("seeds", pa.int64())]
    + [(f"{name}{end}", pa.float64()) for name in ESTIMATES for end in ("", "_low", "_high")]
    + [(name, pa.float64()) for name in COST]
)
SCHEMAS = {"runs": RUNS, "summary": SUMMARY, "labels": LABELS, "outcomes": OUTCOMES}
METRICS = {"strict": {"mean": NUMBER}, "total": dict.fromkeys(COST, NUMBER)}
RECORD = {"digest": str, "metrics": METRICS, "pull": dict, "outcomes": [(str, str, str, int, bool, NUMBER)]}


def write_results(
    folder: Path, rows: Sequence[Mapping[str, Any]], records: Sequence[Mapping[str, Any]], tasks: Mapping[str, Task]
) -> None:
    """Write the four tables: `rows` of seal.experiment.summary.summarise, `records` of seal.experiment.runs."""
    new_folder(folder)
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
        for row in as_rows(r["outcomes"]):
            task = tasks[row["task_id"]]
            outcomes.append({**key, **row, "scenario_id": task.scenario_id, "category": task.category})
    write_parquet(folder / "runs.parquet", pa.Table.from_pylist(runs, RUNS))
    write_parquet(folder / "labels.parquet", pa.Table.from_pylist(labels, LABELS))
    write_parquet(folder / "outcomes.parquet", pa.Table.from_pylist(outcomes))
    write_parquet(folder / "summary.parquet", pa.Table.from_pylist(list(rows), SUMMARY))


def write_transfer(
    folder: Path,
    rows: Sequence[Mapping[str, Any]],
    found: Sequence[Mapping[str, Any]],
    scenarios: Mapping[str, Mapping[str, str]],
) -> None:
    """transfer.parquet: a row per destination and arm; transfer_outcomes.parquet: one per held-out rollout.

    Args: see seal.experiment.transfer. A destination "" is home.
    """
    new_folder(folder)
    outcomes = []
    for f in found:
        key = {"to": f["to"], "arm": f["arm"], "seed": f["seed"], "round": f["depth"]}
        for row in as_rows(f["outcomes"]):
            outcomes.append({**key, **row, "scenario_id": scenarios[f["to"]][row["task_id"]]})
    write_parquet(folder / "transfer.parquet", pa.Table.from_pylist(list(rows)))
    write_parquet(folder / "transfer_outcomes.parquet", pa.Table.from_pylist(outcomes))


def restore(folder: Path, out: Path, wanted: Mapping[tuple[str, int, int], str], tasks: Container[str]) -> int:
    """Give `out` the records that `folder` holds and it lacks; how many. A folder without results gives none.

    A run goes on only where its last policy is kept too, so a restored one that needs more rounds starts anew.

    Args: `wanted` maps (arm, seed, round) to the digest of every record that is asked for. The folder will be written
    anew with these. Raises ParamError when it holds others, which would be lost, ArtifactError when it is damaged, or
    has other outcomes than `out`. `tasks`: the ids of the environment's.
    """
    if not holds_results(folder):
        return 0
    runs = read_result(folder, "runs")
    for run in runs:
        if wanted.get((run["arm"], run["seed"], run["round"])) != run["digest"]:
            told = f"{folder} holds {run['arm']}, seed {run['seed']}, round {run['round']}"
            remedy = "these arms, seeds, rounds and parameters do not make it, so it would be lost: name another folder"
            raise ParamError("--results", told, remedy)
    outcomes: dict[tuple[Any, ...], list[list[Any]]] = defaultdict(list)
    rated, pulled = (defaultdict(dict) for _ in range(2))  # (arm, seed, round) -> label -> share
    for row in read_result(folder, "outcomes"):
        outcomes[row["arm"], row["seed"], row["round"]].append([row[name] for name in OUTCOME])
    for row in read_result(folder, "labels"):
        for name, found in (("rate", rated), ("pull", pulled)):
            if row[name] is not None:
                found[row["arm"], row["seed"], row["round"]][row["label"]] = row[name]
    restored = 0
    for run in runs:
        key = run["arm"], run["seed"], run["round"]
        path = out / run["arm"] / f"s{run['seed']}" / f"r{run['round']}.json"
        if len(outcomes[key]) != run["outcomes"]:
            told = f"{folder}: {len(outcomes[key])} of {run['outcomes']} outcomes of {' '.join(map(str, key))}"
            raise ArtifactError("results", told, mend(folder))
        metrics = _metrics(folder, run)
        if told := _damage(outcomes[key], tasks) or _contradicts(metrics, outcomes[key], rated[key]):
            raise ArtifactError("results", f"{folder}: {' '.join(map(str, key))}: {told}", mend(folder))
        there = read_record(path, RECORD) if path.exists() else {}
        if there.get("digest") == run["digest"]:
            if sorted(there["outcomes"]) != sorted(outcomes[key]):
                told = f"{folder} and {path} have other outcomes of the same run"
                raise ArtifactError("results", told, f"keep one: {mend(folder)}; or remove {path.parent}")
        else:
            write_json(path, record(run["digest"], metrics, pulled[key], outcomes[key]))
            restored += 1
    return restored


def holds_results(folder: Path) -> bool:
    """Whether a folder has any of the tables; one that lacks some is damaged."""
    return any((folder / f"{name}.parquet").exists() for name in SCHEMAS)


def mend(path: Path) -> str:
    """What to do about a damaged folder of results, or a table of it."""
    return f"take it from git again: git checkout -- {path}; or remove the folder, and run the experiment again"


def read_result(folder: Path, name: str, columns: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Rows of one of the four tables, with these of its columns in SCHEMAS (default: all). Raises ArtifactError."""
    schema = pa.schema([field for field in SCHEMAS[name] if not columns or field.name in columns])
    return rows_like(folder / f"{name}.parquet", schema)


def rows_like(path: Path, schema: pa.Schema) -> list[dict[str, Any]]:
    """Rows of a table of results, its columns those of `schema`. Raises ArtifactError."""
    with mended_by(mend(path)):
        table = read_parquet(path)
        for field in schema:
            if field.name not in table.column_names:
                raise ArtifactError("results", f"{path} has no column {field.name}", "")
            if (kind := table.schema.field(field.name).type) not in (field.type, pa.null()):
                raise ArtifactError("results", f"{path}: column {field.name} is {kind}, not {field.type}", "")
    return table.select(schema.names).to_pylist()


def _metrics(folder: Path, run: Mapping[str, Any]) -> dict[str, Any]:
    path = folder / "runs.parquet"
    try:
        metrics = json.loads(run["metrics"])
    except (TypeError, ValueError) as error:
        raise ArtifactError("results", f"{path}: metrics: {error}", mend(path)) from None
    if told := shape_error(metrics, METRICS, "metrics"):
        raise ArtifactError("results", f"{path}: {told}", mend(path))
    return metrics


def _damage(outcomes: Sequence[Sequence[Any]], tasks: Container[str]) -> str:
    """What no evaluation has as its outcomes; "" where there is nothing."""
    if any(None in outcome for outcome in outcomes):
        return "one of its outcomes lacks a value"
    once = {tuple(outcome[:4]) for outcome in outcomes}
    if len(once) < len(outcomes):
        return f"{len(outcomes) - len(once)} of its outcomes stand there twice"
    if unknown := sorted(task for _, _, task, _, _, _ in outcomes if task not in tasks):
        return f"there is no task {unknown[0]}"
    bad = next((progress for *_, progress in outcomes if not 0 <= progress <= 1), None)
    return "" if bad is None else f"a progress of {bad:g} is none"


def _contradicts(metrics: Mapping[str, Any], outcomes: Sequence[Sequence[Any]], rates: Mapping[str, float]) -> str:
    """What the other tables say otherwise than the metrics of a run: they are of another one. "" where they agree."""
    if rates != metrics.get("labels", {}):
        return "labels.parquet has other rates than its metrics"
    bare: dict[str, list[bool]] = defaultdict(list)
    for split, mode, _, _, success, _ in outcomes:
        if mode == "off":
            bare[split].append(success)
    scores = [sum(solved) / len(solved) for solved in bare.values()]
    mean = metrics["strict"]["mean"]
    return "" if any(abs(score - mean) < 1e-5 for score in scores) else f"its outcomes do not make {mean:.3f}"


def as_outcomes(rows: Iterable[Mapping[str, Any]]) -> list[list[Any]]:
    """Rows of the evaluations table, or the like, as lists of OUTCOME."""
    return [[row[name] for name in OUTCOME] for row in rows]


def as_rows(outcomes: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Lists of OUTCOME as rows."""
    return [dict(zip(OUTCOME, outcome, strict=True)) for outcome in outcomes]


def record(
    digest: str, metrics: Mapping[str, Any], pulled: Mapping[str, float], outcomes: Sequence[Sequence[Any]]
) -> dict[str, Any]:
    """What is kept of a round of a run; `outcomes`: a list of OUTCOME a held-out rollout."""
    return {"digest": digest, "metrics": dict(metrics), "pull": dict(pulled), "outcomes": list(outcomes)}
