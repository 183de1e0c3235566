"""Tasks of the user's own from a YAML or Parquet file: what users say, gold calls or a checker for each turn.

Everything that is wrong is one ParamError that names the task, what is written there, and what to write.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from seal.core.errors import ParamError
from seal.core.types import Call, Json, Split, Task, ToolDoc, UserTurn
from seal.env.custom.plain_json import to_json
from seal.settings.params import load_yaml
from seal.settings.typed import Settings, read
from seal.tools.literal import NotACall, call_of, tree_of
from seal.tools.schema import signature_of

TEST_SHARE, DEV_SHARE = 1 / 3, 1 / 5  # of all scenarios; of those that are left


class TurnEntry(Settings):
    """A user turn of a task."""

    user: str
    "The message."
    gold: tuple[Any, ...] = ()
    "Calls that serve it, as text or {name, arguments}."
    check: str = ""
    "Who judges the turn instead of the gold calls: a function, schema or judge."


class TaskEntry(Settings):
    """A task as it is written in the file."""

    id: str
    "Its name, once in the file."
    turns: tuple[TurnEntry, ...]
    "What the user says, one turn after another."
    scenario: str = ""
    "Tasks that share one share a split (default: the id)."
    split: Literal["", "train", "dev", "test"] = ""
    "Of its scenario (empty: derived)."
    category: str = "base"
    "By which reports group tasks."
    state: dict[str, Any] = {}
    "What the world starts from."
    toolset: tuple[str, ...] = ()
    "The tools of the task (none named: all)."
    holdout: dict[str, int] = {}
    "Tool -> the turn that reveals it."
    known_bad: str = ""
    "Why the task cannot be solved (empty: it can)."


def load_tasks(path: Path, docs: Sequence[ToolDoc], digest: str) -> list[Task]:
    """All tasks in the order of the file. `digest`: of the tools; tasks of other tools are other tasks."""
    entries = [read(TaskEntry, row, f"{path.name}[{i}]") for i, row in enumerate(_rows(path))]
    if not entries:
        raise ParamError("tasks", f"{path} is empty", "write a list of tasks (see docs/custom.md)")
    if twice := [name for name, n in Counter(entry.id for entry in entries).items() if n > 1]:
        raise ParamError("task id", twice[0], f"{path.name} has more than one task of this id: rename one")
    splits = splits_of(entries)
    return [_task(entry, splits[entry.scenario or entry.id], docs, digest) for entry in entries]


def splits_of(entries: Sequence[TaskEntry]) -> dict[str, Split]:
    """Scenario -> split, as given, else by the rank of the scenario's hash among those for which none is given."""
    given: dict[str, str] = {}
    for entry in entries:
        scenario = entry.scenario or entry.id
        if entry.split and given.setdefault(scenario, entry.split) != entry.split:
            value = f"scenario {scenario} is in {given[scenario]} and in {entry.split}"
            raise ParamError("split", value, f"give all its tasks one split; the other is at task {entry.id}")
    scenarios = dict.fromkeys(entry.scenario or entry.id for entry in entries)
    free = sorted((s for s in scenarios if s not in given), key=lambda s: hashlib.blake2b(s.encode()).digest())
    n_test = round(len(free) * TEST_SHARE)
    n_dev = round((len(free) - n_test) * DEV_SHARE)
    ranked = ["test"] * n_test + ["dev"] * n_dev + ["train"] * (len(free) - n_test - n_dev)
    splits = {**given, **dict(zip(free, ranked, strict=True))}
    for needed in ("train", "test"):
        if needed not in splits.values():
            value = f"no scenario for {needed} among {len(scenarios)}"
            raise ParamError("splits", value, "write three scenarios or more, or give each task its split")
    return splits


def _rows(path: Path) -> list[Any]:
    if not path.is_file():
        raise ParamError("tasks", f"{path} is not there", "write it, or name another under envs.custom.tasks")
    rows = _parquet(path) if path.suffix == ".parquet" else load_yaml(path, "tasks")
    if not isinstance(rows, list):
        raise ParamError("tasks", f"{path} holds a {type(rows).__name__}", "write a list of tasks: - id: ...")
    return rows


def _parquet(path: Path) -> list[dict[str, Any]]:
    """Columns are the keys of a task; `state` and `holdout` may be JSON text, and what is null is left out."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_table(path).to_pylist()
        texts = ({k: json.loads(row[k]) for k in ("state", "holdout") if isinstance(row.get(k), str)} for row in rows)
        return [_without_null(row | text) for row, text in zip(rows, texts, strict=True)]
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ParamError("tasks", f"{path}: {error}", "write it again as Parquet, `state` as JSON text") from None


def _without_null(row: dict[str, Any]) -> dict[str, Any]:
    """Of a row and its turns. Turns of another shape stay as they are, for `read` to tell."""
    row = {k: v for k, v in row.items() if v is not None}
    turns = row.get("turns", [])
    if isinstance(turns, list) and all(isinstance(turn, dict) for turn in turns):
        turns = [{k: v for k, v in turn.items() if v is not None} for turn in turns]
    return row | {"turns": turns}


def _task(entry: TaskEntry, split: Split, docs: Sequence[ToolDoc], digest: str) -> Task:
    known = {doc.name: doc for doc in docs}
    toolset = entry.toolset or tuple(known)
    for name in (*toolset, *entry.holdout):
        if name not in known:
            raise ParamError(f"task {entry.id}, toolset", name, f"no such tool; there are: {', '.join(known)}")
    if not entry.turns:
        raise ParamError(f"task {entry.id}, turns", "none", "write at least one: - user: ...")
    at_hand = {name: known[name] for name in toolset}
    turns = tuple(UserTurn(turn.user, tuple(_gold(entry.id, i, turn, at_hand))) for i, turn in enumerate(entry.turns))
    for tool, first in entry.holdout.items():
        if not 0 < first < len(turns):
            value = f"{tool} at turn {first}"
            raise ParamError(f"task {entry.id}, holdout", value, f"reveal it at a turn from 1 to {len(turns) - 1}")
        if early := [i for i, turn in enumerate(turns[:first]) if any(call.name == tool for call in turn.gold)]:
            value = f"turn {early[0]} calls {tool}, which is revealed at turn {first}"
            raise ParamError(f"task {entry.id}, gold", value, "reveal the tool earlier, or call it later")
    open_end = next((i for i, turn in enumerate(entry.turns) if turn.check and not turn.gold), len(turns))
    if late := [i for i, turn in enumerate(entry.turns) if i > open_end and not turn.check]:
        value = f"turn {late[0]} is compared with a gold run, and turn {open_end} before it has no gold calls"
        raise ParamError(f"task {entry.id}", value, "give that one gold calls too, or this one a check")
    state = {"tools": digest, "state": to_json(entry.state), "checks": [turn.check for turn in entry.turns]}
    scenario, tools, holdout = entry.scenario or entry.id, tuple(toolset), dict(entry.holdout)
    return Task(entry.id, "custom", entry.category, scenario, split, turns, state, tools, holdout, entry.known_bad)


def _gold(task: str, number: int, turn: TurnEntry, known: Mapping[str, ToolDoc]) -> Iterator[Call]:
    for i, written in enumerate(turn.gold):
        place = f"task {task}, turn {number}, gold call {i}"
        call = _call(place, written, known)
        if call.name not in known:
            raise ParamError(place, call.name, f"no such tool in this task; there are: {', '.join(known)}")
        params = {param.name for param in known[call.name].params}
        if unknown := [name for name in call.arguments if name not in params]:
            raise ParamError(place, f"{call.name}({unknown[0]}=...)", f"its parameters: {', '.join(params) or 'none'}")
        yield call


def _call(place: str, written: Json, known: Mapping[str, ToolDoc]) -> Call:
    remedy = 'write it as tool(name="value"), with literal arguments'
    if isinstance(written, str):
        try:
            return call_of(tree_of(written), signature_of(list(known.values())))
        except NotACall as error:
            raise ParamError(place, f"{written}: {error}", remedy) from None
    if isinstance(written, Mapping) and set(written) <= {"name", "arguments"} and isinstance(written.get("name"), str):
        with suppress(ValueError, TypeError, RecursionError):  # JSON text or not, it has to hold what JSON holds
            arguments = written.get("arguments") or {}
            arguments = json.loads(arguments if isinstance(arguments, str) else json.dumps(arguments))
            if isinstance(arguments, Mapping):
                return Call(written["name"], dict(arguments))
    raise ParamError(place, written, remedy)
