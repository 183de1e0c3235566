"""What an experiment found, as a text table and as Parquet files to commit."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from seal.core.types import Task
from seal.report.tables import NONE, compact, text_table
from seal.store.parquet import write_parquet

HEAD = (
    "arm",
    "round",
    "seeds",
    "strict",
    "95%",
    "gain",
    "95%",
    "margin",
    "95%",
    "dev",
    "on",
    "rollouts",
    "tokens",
    "updates",
)
LEGEND = (
    "strict: mean over seeds, interface off; gain: minus the start, margin: minus the first arm, both paired;\n"
    "intervals are over seeds and scenarios; rollouts, tokens, updates: of training since the start, mean over seeds"
)


def experiment_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of seal.evaluate.summary.summarise as text."""
    first = rows[0]["arm"] if rows else ""
    cells = []
    for row in rows:
        margin = _estimate(row, "margin", "+") if row["arm"] != first else (NONE, "")
        gain = _estimate(row, "gain", "+") if row["depth"] else ("start", "")
        cost = f"{row['rollouts']:,.0f}", compact(round(row["tokens"])), f"{row['updates']:,.0f}"
        scores = *_estimate(row, "strict"), *gain, *margin, _estimate(row, "dev")[0], _estimate(row, "on")[0]
        cells.append((row["arm"], f"r{row['depth']}", str(row["seeds"]), *scores, *cost))
    return text_table(HEAD, cells, (0,)) + "\n" + LEGEND


def _estimate(row: Mapping[str, Any], name: str, sign: str = "") -> tuple[str, str]:
    if row[name] is None:
        return NONE, ""
    return (
        f"{100 * row[name]:{sign}.1f}",
        f"[{100 * row[f'{name}_low']:{sign}.1f}, {100 * row[f'{name}_high']:{sign}.1f}]",
    )


def write_results(
    folder: Path, rows: Sequence[Mapping[str, Any]], records: Sequence[Mapping[str, Any]], tasks: Mapping[str, Task]
) -> None:
    """summary.parquet: a row per arm and round; outcomes.parquet: one per arm, seed, round and held-out rollout."""
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = [
        {
            "arm": r["arm"],
            "seed": r["seed"],
            "round": r["depth"],
            "split": split,
            "mode": mode,
            "task_id": task,
            "scenario_id": tasks[task].scenario_id,
            "category": tasks[task].category,
            "trial": trial,
            "success": success,
            "progress": progress,
        }
        for r in records
        for split, mode, task, trial, success, progress in r["outcomes"]
    ]
    write_parquet(folder / "summary.parquet", pa.Table.from_pylist(list(rows)))
    write_parquet(folder / "outcomes.parquet", pa.Table.from_pylist(outcomes))
