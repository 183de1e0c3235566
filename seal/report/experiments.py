"""What experiments found, and what their policies do elsewhere: as text tables, and as the page shows it."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from seal.core.errors import ArtifactError
from seal.experiment.results import SCHEMAS, mend, read_result, rows_like
from seal.experiment.summary import whole
from seal.report.tables import NONE, Cells, between, compact, text_table
from seal.store.files import atomic_file

_DIFFERENCES = ("gain", "95%", "margin", "95%", "behind", "95%")
HEAD = (
    *("arm", "seeds", "round by round", "strict", "95%", *_DIFFERENCES),
    *("dev", "on", "rollouts", "tokens", "updates"),
)
TURNS = ("arm", "seeds", "round by round", "turns", "95%", *_DIFFERENCES)
LEFT = (0, 2)
LEGEND = (
    "strict: after the last round, mean over seeds, interface off; gain: minus the start; margin: minus the first\n"
    "arm; behind: the last arm minus this one; differences are paired, intervals over seeds and scenarios (of one\n"
    "seed: over its scenarios alone); rollouts, tokens, updates: of training since the start, mean over seeds; turns:\n"
    "share of a task's user turns that are served"
)
TRANSFER_HEAD = ("tasks of", "arm", "seeds", "rounds", "start", "strict", "95%", "gain", "95%", "margin", "95%")
TRANSFER_LEGEND = (
    "strict: of policies trained at home, bare docs; gain: minus the start there; margin: minus the first arm"
)
TRANSFERS = pa.schema(
    [("to", pa.string()), ("arm", pa.string()), ("seeds", pa.int64()), ("rounds", pa.int64())]
    + [
        (f"{name}{end}", pa.float64())
        for name in ("start", "strict", "gain", "margin")
        for end in ("", "_low", "_high")
    ]
)
LABELS_LEGEND = (
    "share of bare test turns that fail by themselves, by primary label; mean over seeds, of one seed with its\n"
    "interval over scenarios"
)


def experiment_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows of seal.experiment.summary.summarise as text: tasks solved, then user turns served; a line an arm."""
    return "\n\n".join(text_table(*cells(rows)) for cells in (task_cells, turn_cells)) + "\n" + LEGEND


def task_cells(rows: Sequence[Mapping[str, Any]]) -> Cells:
    """Tasks solved, and what it took; a row an arm."""
    last = [rounds[-1] for rounds in _by_arm(rows).values()]
    costs = [(f"{r['rollouts']:,.0f}", compact(round(r["tokens"])), f"{r['updates']:,.0f}") for r in last]
    others = [(estimate(r, "dev")[0], estimate(r, "on")[0]) for r in last]
    parts = zip(_scores(rows, "strict"), others, costs, strict=True)
    return HEAD, [(*cells, *other, *cost) for cells, other, cost in parts], LEFT


def turn_cells(rows: Sequence[Mapping[str, Any]]) -> Cells:
    """User turns served; a row an arm."""
    return TURNS, _scores(rows, "progress", "progress_"), LEFT


def transfer_table(rows: Sequence[Mapping[str, Any]], home: str) -> str:
    """Rows of seal.experiment.transfer.summarise_transfer as text. `home`: the environment that was trained in."""
    return text_table(*transfer_cells(rows, f"{home} (home)")) + "\n" + TRANSFER_LEGEND


def transfer_cells(rows: Sequence[Mapping[str, Any]], home: str = "home") -> Cells:
    """A row an environment and arm. `home`: what the environment that was trained in is called."""
    cells = []
    for row in rows:
        margin = estimate(row, "margin", "+") if row["arm"] != rows[0]["arm"] else (NONE, "")
        scores = estimate(row, "start")[0], *estimate(row, "strict"), *estimate(row, "gain", "+"), *margin
        cells.append((row["to"] or home, row["arm"], str(row["seeds"]), str(row["rounds"]), *scores))
    return TRANSFER_HEAD, cells, (0, 1)


def label_table(records: Sequence[Mapping[str, Any]]) -> str:
    """How the start's test turns fail, and each arm's after its last round, as text. `records`: see
    seal.experiment.runs."""
    last = {r["arm"]: max(o["depth"] for o in records if o["arm"] == r["arm"]) for r in records}
    first = next(iter(last))
    columns = {"start": (first, 0), **{arm: (arm, depth) for arm, depth in last.items() if depth}}
    found = {
        name: [r["metrics"] for r in records if (r["arm"], r["depth"]) == place] for name, place in columns.items()
    }
    labels = sorted({label for runs in found.values() for m in runs for label in m.get("labels", {})})
    rows = [(label, *(_rate(label, runs) for runs in found.values())) for label in labels]
    return text_table(("label", *columns), rows) + "\n" + LABELS_LEGEND


def _rate(label: str, runs: Sequence[Mapping[str, Any]]) -> str:
    rate = sum(m.get("labels", {}).get(label, 0.0) for m in runs) / len(runs)
    ends = runs[0].get("label_intervals", {}).get(label) if len(runs) == 1 else None
    return f"{100 * rate:.1f}" + (f" {between(*ends)}" if ends else "")


def _by_arm(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    by_arm: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        by_arm[row["arm"]].append(row)
    return by_arm


def _scores(rows: Sequence[Mapping[str, Any]], score: str, prefix: str = "") -> list[tuple[str, ...]]:
    """Arm, seeds, a score round by round and after the last one, and its differences."""
    cells = []
    for arm, rounds in _by_arm(rows).items():
        last = rounds[-1]
        curve = " ".join(estimate(row, score)[0] for row in rounds)
        differences = [estimate(last, prefix + name, "+") for name in ("gain", "margin", "behind")]
        flat = (part for cell in (estimate(last, score), *differences) for part in cell)
        cells.append((arm, str(last["seeds"]), curve, *flat))
    return cells


def estimate(row: Mapping[str, Any], name: str, sign: str = "") -> tuple[str, str]:
    """The cells of a mean and its interval, in points; of a difference with its `sign`."""
    if row[name] is None:
        return NONE, ""
    return f"{100 * row[name]:{sign}.1f}", between(row[f"{name}_low"], row[f"{name}_high"], sign)


@dataclass(frozen=True, slots=True)
class Results:
    """A folder of results (see seal.experiment.results).

    summary   rows of summary.parquet
    rates     arm -> label -> share of bare test turns after its last round, mean over seeds; "start" is an arm, too
    pulled    arm -> label -> share of what training pulled, mean over seeds and rounds
    """

    name: str
    summary: list[dict[str, Any]]
    rates: dict[str, dict[str, float]]
    pulled: dict[str, dict[str, float]]


def curves(summary: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[tuple[float, tuple[float, float, float]]]]]:
    """Each arm's strict scores: (rollouts, (mean, low, high)) a round."""
    found: dict[str, list[tuple[float, tuple[float, float, float]]]] = defaultdict(list)
    for row in summary:
        if row["strict"] is not None:
            found[row["arm"]].append((row["rollouts"], (row["strict"], row["strict_low"], row["strict_high"])))
    return list(found.items())


def write_curves(path: Path, summary: Sequence[Mapping[str, Any]]) -> None:
    """The curves as a picture of its own, on white."""
    from seal.report.plots import arm_curves

    svg = arm_curves("curves", curves(summary)).replace("<svg", '<svg style="background:#ffffff"', 1)
    with atomic_file(path) as partial:
        partial.write_text(svg + "\n", encoding="utf-8")


def load_results(root: Path) -> list[Results]:
    """Every folder of results under `root`/results, by name. Raises ArtifactError for a damaged or missing table."""
    folders = sorted({path.parent for path in (root / "results").rglob("*.parquet") if path.stem in SCHEMAS})
    return [_load(folder, folder.relative_to(root / "results").as_posix()) for folder in folders]


def _load(folder: Path, name: str) -> Results:
    summary, labels = read_result(folder, "summary"), read_result(folder, "labels")
    finished = {tuple(row.values()) for row in read_result(folder, "runs", ("arm", "seed", "round"))}
    shown = whole(finished)
    runs = Counter((arm, depth) for arm, _, depth in shown)
    labelled = {(row["arm"], row["seed"], row["round"]) for row in labels}
    unknown = {(arm, depth) for arm, _, depth in labelled - finished}
    if others := unknown | ({(row["arm"], row["depth"]) for row in summary} ^ runs.keys()):
        arm, depth = min(others)
        raise ArtifactError("results", f"{folder}: round {depth} of {arm} is not in all tables", mend(folder))
    last = {row["arm"]: row["depth"] for row in summary}
    rates: dict[str, dict[str, float]] = {"start": {}, **{arm: {} for arm in last}}
    pulled: dict[str, dict[str, float]] = {arm: {} for arm in last}
    first = next(iter(last), "")
    trained = {arm: sum(n for (other, depth), n in runs.items() if other == arm and depth) for arm in last}
    for row in labels:
        arm, depth, label = row["arm"], row["round"], row["label"]
        if (arm, row["seed"], depth) not in shown:
            continue
        for place in (["start"] if arm == first and not depth else []) + ([arm] if depth == last[arm] else []):
            rates[place][label] = rates[place].get(label, 0.0) + (row["rate"] or 0.0) / runs[arm, depth]
        if row["pull"] is not None:
            pulled[arm][label] = pulled[arm].get(label, 0.0) + row["pull"] / trained[arm]
    return Results(name, summary, rates, pulled)


def load_transfers(root: Path) -> list[tuple[str, list[dict[str, Any]]]]:
    """Every folder with a transfer table under `root`/results, by name, and its rows. Raises ArtifactError."""
    folders = sorted(path.parent for path in (root / "results").rglob("transfer.parquet"))
    return [(folder.relative_to(root / "results").as_posix(), read_transfer(folder)) for folder in folders]


def read_transfer(folder: Path) -> list[dict[str, Any]]:
    """The rows of a folder's transfer table; none where it has none. Raises ArtifactError for a damaged one."""
    path = folder / "transfer.parquet"
    return rows_like(path, TRANSFERS) if path.exists() else []
