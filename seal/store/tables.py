"""Tables on disk, and the exact ways between the nouns of seal.core.types and rows.

What may be any JSON is stored as JSON text, keys sorted. (A tuple comes back as a list, and keys as text: JSON has no
others.) Lone surrogates, which a policy can write and no file can hold, are stored as their escapes.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from seal.core.errors import ArtifactError, ContractError
from seal.core.types import (
    Call,
    CallError,
    Diagnosis,
    Json,
    Result,
    Rollout,
    Step,
    Task,
    Tokens,
    UserTurn,
    Verdict,
)
from seal.store.checks import check
from seal.store.parquet import read_parquet, write_parquet
from seal.store.schemas import TABLES

Row = dict[str, Json]
_BARE = ("prompt_ids", "completion_ids", "loss_mask")


def write_table(path: Path, name: str, rows: Iterable[Mapping[str, Json]], **same: Json) -> None:
    """Write rows of the table `name`, sorted by its key and checked; `same` adds columns that are equal in all rows.

    The same rows give the same bytes, in whatever order they come. Raises ContractError.
    """
    kind = TABLES[name]
    rows = [{**same, **row} for row in rows]
    for row in rows:
        if row.keys() != set(kind.names):
            missing, more = sorted(set(kind.names) - row.keys()), sorted(row.keys() - set(kind.names))
            said = "; ".join(f"{what} {', '.join(of)}" for what, of in (("without", missing), ("unknown", more)) if of)
            raise ContractError(f"row of table {name}", said, f"its columns are {', '.join(kind.names)}")
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
        raise ArtifactError("table", path, f"it is a table of {of or 'no known kind'}, not {name}: run its stage again")
    if version != str(kind.version):
        remedy = f"this version of seal reads version {kind.version}: run its stage again"
        raise ArtifactError("table", f"{path}: version {version} of {name}", remedy)
    check(table, name)
    return table


def rows_of_tasks(tasks: Iterable[Task]) -> list[Row]:
    """A row a task. The initial state keeps its order: an environment may list it."""
    return [
        {
            "env": task.env,
            "task_id": task.task_id,
            "category": task.category,
            "scenario_id": task.scenario_id,
            "split": task.split,
            "turns": [{"message": turn.message, "gold": calls_rows(turn.gold)} for turn in task.turns],
            "initial_state": to_json(task.initial_state, sort=False),
            "toolset": list(task.toolset),
            "holdout": to_json(task.holdout),
            "known_bad": task.known_bad,
        }
        for task in tasks
    ]


def tasks_of(path: Path) -> list[Task]:
    """The tasks of a task table, by id."""
    return [
        Task(
            task_id=row["task_id"],
            env=row["env"],
            category=row["category"],
            scenario_id=row["scenario_id"],
            split=row["split"],
            turns=tuple(UserTurn(turn["message"], calls_of(turn["gold"])) for turn in row["turns"]),
            initial_state=json.loads(row["initial_state"]),
            toolset=tuple(row["toolset"]),
            holdout=json.loads(row["holdout"]),
            known_bad=row["known_bad"],
        )
        for row in _rows(path, "tasks")
    ]


def rows_of_rollouts(
    rollouts: Sequence[Rollout],
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
        step = train_step if isinstance(train_step, int) else train_step[r.rollout_id]
        rows["trajectories"].append({**key, "train_step": step, **trajectory_row(r, known.get(r.task_id))})
        rows["steps"] += [{**key, **step_row(step)} for step in r.steps]
        rows["tokens"].append({**key, **tokens_row(r.tokens)})
    return rows


def rollouts_of(folder: Path) -> list[Rollout]:
    """The rollouts of a folder with trajectories, steps and (for policies with weights) tokens.

    Sorted by train step, task and sample, so groups are adjacent. Without a tokens table their token side is empty.
    """
    steps: dict[str, list[Step]] = defaultdict(list)
    for row in _rows(folder, "steps"):
        steps[row["rollout_id"]].append(step_of(row))
    path = folder / "tokens.parquet"
    tokens = {row["rollout_id"]: tokens_of(row) for row in _rows(path, "tokens")} if path.exists() else {}
    rows = _rows(folder, "trajectories")
    rows.sort(key=lambda row: (row["train_step"], row["task_id"], row["sample"], row["rollout_id"]))
    return [
        Rollout(
            rollout_id=row["rollout_id"],
            task_id=row["task_id"],
            sample=row["sample"],
            seed=row["seed"],
            mode=row["interface_mode"],
            policy_hash=row["policy_hash"],
            interface_hash=row["interface_hash"],
            steps=tuple(steps[row["rollout_id"]]),
            stop_reason=row["stop_reason"],
            dropped=row["dropped_item"],
            tokens=tokens.get(row["rollout_id"], Tokens()),
        )
        for row in rows
    ]


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
    return [
        {
            "round": round_id,
            "phase": phase,
            "rollout_id": rollout_id,
            "turn": v.turn,
            "state_ok": v.state_ok,
            "response_ok": v.response_ok,
            "valid": v.valid,
            "confidence": float(v.confidence),
            "evidence": to_json(v.evidence),
        }
        for rollout_id, turns in verdicts.items()
        for v in turns
    ]


def verdicts_of(path: Path) -> dict[str, list[Verdict]]:
    """Rollout id -> its verdicts in order of turns. `path`: the table or its folder."""
    names = ("turn", "state_ok", "response_ok", "valid", "confidence")
    return _grouped(path, "verdicts", lambda row: Verdict(*(row[n] for n in names), json.loads(row["evidence"])))


def rows_of_diagnoses(diagnoses: Mapping[str, Iterable[Diagnosis]], round_id: str, phase: str) -> list[Row]:
    """A row a label; `diagnoses` goes by rollout id. `rank` is the place of a label among those of its turn."""
    rows: list[Row] = []
    for rollout_id, found in diagnoses.items():
        ranks: dict[int, int] = defaultdict(int)
        for d in found:
            key = {"round": round_id, "phase": phase, "rollout_id": rollout_id, "turn": d.turn}
            rows.append({**key, "rank": ranks[d.turn], **diagnosis_row(d)})
            ranks[d.turn] += 1
    return rows


def diagnoses_of(path: Path) -> dict[str, list[Diagnosis]]:
    """Rollout id -> its diagnoses, by turn, in the order they were given. `path`: the table or its folder."""
    names = ("turn", "label", "detail", "primary", "root", "tool", "parameter", "step")
    return _grouped(
        path,
        "diagnoses",
        lambda row: Diagnosis(*(row[n] for n in names), json.loads(row["evidence"]), row["confidence"]),
    )


def rows_of_items(
    items: Iterable[Any],
    interface_hash: str,
    round_id: str,
    uplifts: Iterable[Mapping[str, Json]] = (),
    count: Callable[[str], int] = lambda text: len(text.split()),
) -> list[Row]:
    """Rows of interface_items. `items`: seal.interface.state.Item; `uplifts`: rows of seal.interface.uplift, if any."""
    worth = {row["item"]: row for row in uplifts}
    return [
        {
            **{"round": round_id, "interface_hash": interface_hash, "item": item.id, "kind": item.kind},
            **{"target": item.target, "place": item.where, "text": item.text, "tokens": count(item.text)},
            **{"born_in": item.born_in, "label": str(item.label), "support": item.support, "status": item.status},
            "evidence": to_json(item.evidence),
            **{name: worth.get(item.id, {}).get(name) for name in TABLES["interface_items"].optional},
        }
        for item in items
    ]


def _rows(path: Path, name: str) -> list[Row]:
    return read_table(path if path.suffix == ".parquet" else path / f"{name}.parquet", name).to_pylist()


def _grouped(path: Path, name: str, make: Callable[[Row], Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for row in _rows(path, name):
        found[row["rollout_id"]].append(make(row))
    return dict(found)


def _table(rows: list[Row], schema: pa.Schema) -> pa.Table:
    try:
        return pa.Table.from_pylist(rows, schema)
    except UnicodeEncodeError:
        return pa.Table.from_pylist([_writable(row) for row in rows], schema)


def _writable(value: Any) -> Any:
    """Text with lone surrogates as their escapes, at any depth."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {key: _writable(item) for key, item in value.items()}
    return [_writable(item) for item in value] if isinstance(value, list) else value
