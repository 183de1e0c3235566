"""Tables on disk: written and read as rows, or as the nouns of seal.core.types, exactly there and back."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from seal.core.errors import ArtifactError, ContractError
from seal.core.types import Diagnosis, Json, Rollout, Task, Tokens, Verdict
from seal.store import rows as nouns
from seal.store.checks import check, column_fault
from seal.store.parquet import read_parquet, write_parquet
from seal.store.schemas import TABLES

Row = dict[str, Json]


def write_table(path: Path, name: str, rows: Iterable[Mapping[str, Json]], **same: Json) -> None:
    """Write rows of the table `name`, sorted by its key and checked; `same` adds columns that are equal in all rows.

    The same rows give the same bytes, in whatever order they come. Raises ContractError.
    """
    kind = TABLES[name]
    rows = [{**same, **row} for row in rows]
    for row in rows:
        if row.keys() != set(kind.names):
            fault = column_fault(kind.names, row)
            raise ContractError(f"row of table {name}", fault, f"its columns are {', '.join(kind.names)}")
    try:
        table = _table(rows, kind.schema)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ContractError(f"rows of table {name}", error, "values must fit the column types") from None
    check(table, name)
    write_parquet(path, table, kind.key)


def read_table(path: Path, name: str) -> pa.Table:
    """A checked table of the kind `name`.

    Raises ArtifactError (missing, truncated, of another kind or version), ContractError (columns, nulls, words, keys).
    """
    table, kind = read_parquet(path), TABLES[name]
    found = {key.decode(): value.decode(errors="replace") for key, value in (table.schema.metadata or {}).items()}
    of, version = found.get("seal.table"), found.get("seal.version")
    if of != name:
        raise ArtifactError("table", f"{path}: of {of or 'no known kind'}, not {name}", "run its stage again")
    if version != str(kind.version):
        remedy = f"this version of seal reads version {kind.version}: run its stage again"
        raise ArtifactError("table", f"{path}: version {version} of {name}", remedy)
    check(table, name)
    return table


def rows_of_tasks(tasks: Iterable[Task]) -> list[Row]:
    """A row a task."""
    return [nouns.task_row(task) for task in tasks]


def tasks_of(path: Path) -> list[Task]:
    """The tasks of a task table, by id."""
    return [nouns.task_of(row) for row in _rows(path, "tasks")]


def rows_of_rollouts(
    rollouts: Iterable[Rollout],
    round_id: str,
    phase: str,
    train_step: int | Mapping[str, int] = 0,
    tasks: Mapping[str, Task] | Iterable[Task] = (),
) -> dict[str, list[Row]]:
    """Rows of trajectories, steps and tokens.

    Args: `train_step`: of all, or by rollout id; `tasks`: where category and n_turns come from (else they are null).
    """
    known = tasks if isinstance(tasks, Mapping) else {task.task_id: task for task in tasks}
    rows: dict[str, list[Row]] = {"trajectories": [], "steps": [], "tokens": []}
    for r in rollouts:
        key = {"round": round_id, "phase": phase, "rollout_id": r.rollout_id}
        at = train_step if isinstance(train_step, int) else train_step[r.rollout_id]
        rows["trajectories"].append({**key, "train_step": at, **nouns.trajectory_row(r, known.get(r.task_id))})
        rows["steps"] += [{**key, **nouns.step_row(step)} for step in r.steps]
        rows["tokens"].append({**key, **nouns.tokens_row(r.tokens)})
    return rows


def rollouts_of(folder: Path) -> list[Rollout]:
    """The rollouts of a folder with trajectories, steps and (for policies with weights) tokens.

    Sorted by train step, task and sample, so groups are adjacent. Without a tokens table their token side is empty.
    Raises as read_table, and ArtifactError for a table that lacks rows of what another one tells of.
    """
    rows, steps = _rows(folder, "trajectories"), _grouped(folder, "steps", nouns.step_of)
    rows.sort(key=lambda row: (row["train_step"], row["task_id"], row["sample"], row["rollout_id"]))
    counts = {row["rollout_id"]: row["n_steps"] for row in rows}
    check_counts(folder / "steps.parquet", {id_: len(found) for id_, found in steps.items()}, counts, "trajectories")
    path = folder / "tokens.parquet"
    tokens = dict.fromkeys(counts, Tokens())
    if path.exists():
        tokens = {row["rollout_id"]: nouns.tokens_of(row) for row in _rows(path, "tokens")}
        check_counts(path, dict.fromkeys(tokens, 1), dict.fromkeys(counts, 1), "trajectories")
    return [nouns.rollout_of(row, steps.get(row["rollout_id"], ()), tokens[row["rollout_id"]]) for row in rows]


def check_counts(path: Path, found: Mapping[str, int], wanted: Mapping[str, int], by: str) -> None:
    """Raise ArtifactError where the table `path` has not as many rows of each rollout (id -> rows) as `by` tells of."""
    for id_ in sorted(found.keys() | wanted.keys()):
        if (n := found.get(id_, 0)) != (expected := wanted.get(id_, 0)):
            value = f"{path}: {n} rows of rollout {id_}, where {by} tell of {expected}"
            raise ArtifactError(f"table {path.stem}", value, "`dvc checkout`, or run the round's stages again")


def rows_of_outcomes(
    rollouts: Iterable[Rollout], outcomes: Mapping[str, tuple[bool, float]], round_id: str, phase: str
) -> list[Row]:
    """A row a rollout; `outcomes` maps rollout ids to (success, progress)."""
    rows = []
    for r in rollouts:
        success, progress = outcomes[r.rollout_id]
        key = {"round": round_id, "phase": phase, "rollout_id": r.rollout_id}
        rows.append({**key, "task_id": r.task_id, "success": bool(success), "progress": float(progress)})
    return rows


def outcomes_of(path: Path) -> dict[str, tuple[bool, float]]:
    """Rollout id -> (success, progress). `path`: the table or its folder."""
    return {row["rollout_id"]: (row["success"], row["progress"]) for row in _rows(path, "outcomes")}


def rows_of_verdicts(verdicts: Mapping[str, Iterable[Verdict]], round_id: str, phase: str) -> list[Row]:
    """A row a user turn; `verdicts` goes by rollout id."""
    key = {"round": round_id, "phase": phase}
    return [{**key, "rollout_id": id_, **nouns.verdict_row(v)} for id_, found in verdicts.items() for v in found]


def verdicts_of(folder: Path, rollouts: Iterable[Rollout] | None = None) -> dict[str, list[Verdict]]:
    """Rollout id -> its verdicts in order of turns. ArtifactError where they are not those of `rollouts`, if given."""
    found = _grouped(folder, "verdicts", nouns.verdict_of)
    if rollouts is not None:
        ids = [r.rollout_id for r in rollouts]
        check_counts(folder / "verdicts.parquet", dict.fromkeys(found, 1), dict.fromkeys(ids, 1), "trajectories")
    return found


def rows_of_diagnoses(diagnoses: Mapping[str, Iterable[Diagnosis]], round_id: str, phase: str) -> list[Row]:
    """A row a label; `diagnoses` goes by rollout id. `rank` is the place of a label among those of its turn."""
    rows: list[Row] = []
    for rollout_id, found in diagnoses.items():
        ranks: dict[int, int] = defaultdict(int)
        for d in found:
            key = {"round": round_id, "phase": phase, "rollout_id": rollout_id, "rank": ranks[d.turn]}
            rows.append({**key, **nouns.diagnosis_row(d)})
            ranks[d.turn] += 1
    return rows


def diagnoses_of(path: Path) -> dict[str, list[Diagnosis]]:
    """Rollout id -> its diagnoses, by turn, in the order they were given. `path`: the table or its folder."""
    return _grouped(path, "diagnoses", nouns.diagnosis_of)


def rows_of_items(
    items: Iterable[Any],
    interface_hash: str,
    round_id: str,
    uplifts: Iterable[Mapping[str, Json]] = (),
    count: Callable[[str], int] = lambda text: len(text.split()),
) -> list[Row]:
    """Rows of interface_items. `items`: seal.interface.state.Item; `uplifts`: rows of seal.evolve.uplift, if any;
    `count`: tokens of a text (words)."""
    worth = {row["item"]: row for row in uplifts}
    key = {"round": round_id, "interface_hash": interface_hash}
    return [{**key, **nouns.item_row(item, count, worth.get(item.id, {}))} for item in items]


def _rows(path: Path, name: str) -> list[Row]:
    return read_table(path if path.suffix == ".parquet" else path / f"{name}.parquet", name).to_pylist()


def _grouped(path: Path, name: str, noun_of: Callable[[Row], Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for row in _rows(path, name):
        found[row["rollout_id"]].append(noun_of(row))
    return dict(found)


def _table(rows: list[Row], schema: pa.Schema) -> pa.Table:
    try:
        return pa.Table.from_pylist(rows, schema)
    except UnicodeEncodeError:
        return pa.Table.from_pylist([nouns.escape_surrogates(row) for row in rows], schema)
