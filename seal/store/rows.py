"""Single nouns of seal.core.types as rows, and back. Pure.

What may be any JSON is stored as JSON text, keys sorted. (A tuple comes back as a list, and keys as text: JSON has no
others.) Lone surrogates, which a policy can write and no file can hold, are stored as their escapes.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from seal.core.types import Call, CallError, Diagnosis, Json, Result, Rollout, Step, Task, Tokens, UserTurn, Verdict
from seal.store.schemas import TABLES

Row = dict[str, Json]
_BARE = ("prompt_ids", "completion_ids", "loss_mask")
_TASK = ("env", "task_id", "category", "scenario_id", "split", "known_bad")
_ROLLOUT = ("task_id", "sample", "seed", "policy_hash", "interface_hash", "stop_reason")
_ITEM = ("kind", "target", "text", "born_in", "support", "status")
_STEP = ("turn", "step", "text")
_VERDICT = ("turn", "state_ok", "response_ok", "valid", "confidence")
_DIAGNOSIS = ("turn", "label", "detail", "primary", "root", "tool", "parameter", "step")


def to_json(value: Any, sort: bool = True) -> str:
    """JSON text on one line, keys sorted (as given without `sort`); what is no JSON as the nearest there is."""
    try:
        text = json.dumps(value, sort_keys=sort, ensure_ascii=False)
    except (TypeError, ValueError):
        text = json.dumps(_plain(value), sort_keys=sort, ensure_ascii=False)
    return escape_surrogates(text)


def escape_surrogates(value: Any) -> Any:
    """Text with lone surrogates as their escapes, at any depth of lists and mappings."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {key: escape_surrogates(item) for key, item in value.items()}
    return [escape_surrogates(item) for item in value] if isinstance(value, list) else value


def task_row(task: Task) -> Row:
    """The initial state keeps its order, since an environment may list it."""
    return {
        **fields_of(task, _TASK),
        "turns": [{"message": turn.message, "gold": _call_rows(turn.gold)} for turn in task.turns],
        "initial_state": to_json(task.initial_state, sort=False),
        "toolset": list(task.toolset),
        "holdout": to_json(task.holdout),
    }


def task_of(row: Row) -> Task:
    return Task(
        **{name: row[name] for name in _TASK},
        turns=tuple(UserTurn(turn["message"], _calls_of(turn["gold"])) for turn in row["turns"]),
        initial_state=json.loads(row["initial_state"]),
        toolset=tuple(row["toolset"]),
        holdout=json.loads(row["holdout"]),
    )


def trajectory_row(r: Rollout, task: Task | None) -> Row:
    """Without its task, category and n_turns are null."""
    of_task = {"category": task.category if task else None, "n_turns": len(task.turns) if task else None}
    interface = {"interface_mode": r.mode, "dropped_item": r.dropped}
    reached = max((step.turn for step in r.steps), default=-1) + 1
    counts = {"n_turns_reached": reached, "n_steps": len(r.steps), "n_tokens": sum(r.tokens.loss_mask)}
    return {**fields_of(r, _ROLLOUT), **of_task, **interface, **counts}


def rollout_of(row: Row, steps: Sequence[Step], tokens: Tokens) -> Rollout:
    own = {name: row[name] for name in ("rollout_id", *_ROLLOUT)}
    return Rollout(**own, mode=row["interface_mode"], dropped=row["dropped_item"], steps=tuple(steps), tokens=tokens)


def step_row(step: Step) -> Row:
    return {
        **fields_of(step, _STEP),
        "calls": _call_rows(step.calls),
        "errors": [{"kind": error.kind, "message": error.message} for error in step.errors],
        "results": [{"shown": r.shown, "raw": r.raw, "error_kind": r.error_kind} for r in step.results],
    }


def step_of(row: Row) -> Step:
    return Step(
        **{name: row[name] for name in _STEP},
        calls=_calls_of(row["calls"]),
        errors=tuple(CallError(**error) for error in row["errors"]),
        results=tuple(Result(**result) for result in row["results"]),
    )


def tokens_row(tokens: Tokens) -> Row:
    """A bare list that equals the shown one is null."""
    row = fields_of(tokens, tuple(Tokens.__dataclass_fields__))
    return {**row, **{f"bare_{n}": None for n in _BARE if row[f"bare_{n}"] == row[n]}}


def tokens_of(row: Row) -> Tokens:
    lists = {name: tuple(row[name] or ()) for name in Tokens.__dataclass_fields__}
    return Tokens(**{**lists, **{f"bare_{n}": lists[n] for n in _BARE if row[f"bare_{n}"] is None}})


def verdict_row(v: Verdict) -> Row:
    return {**fields_of(v, _VERDICT), "confidence": float(v.confidence), "evidence": to_json(v.evidence)}


def verdict_of(row: Row) -> Verdict:
    return Verdict(*(row[name] for name in _VERDICT), json.loads(row["evidence"]))


def diagnosis_row(d: Diagnosis) -> Row:
    more = {"label": str(d.label), "confidence": float(d.confidence), "evidence": to_json(d.evidence)}
    return {**fields_of(d, _DIAGNOSIS), **more}


def diagnosis_of(row: Row) -> Diagnosis:
    return Diagnosis(*(row[name] for name in _DIAGNOSIS), json.loads(row["evidence"]), row["confidence"])


def item_row(item: Any, count: Callable[[str], int], uplift: Mapping[str, Json]) -> Row:
    """`item`: seal.interface.state.Item; `uplift`: its row of seal.evolve.uplift, or nothing."""
    own = {"item": item.id, "place": item.where, "tokens": count(item.text), "label": str(item.label)}
    measured = {name: uplift.get(name) for name in TABLES["interface_items"].optional}
    return {**fields_of(item, _ITEM), **own, "evidence": to_json(item.evidence), **measured}


def fields_of(noun: Any, names: Sequence[str]) -> Row:
    """These attributes of a value, by name."""
    return dict(zip(names, attrgetter(*names)(noun), strict=True))


def _call_rows(calls: Iterable[Call]) -> list[Row]:
    return [{"name": call.name, "arguments": to_json(call.arguments)} for call in calls]


def _calls_of(rows: Iterable[Row]) -> tuple[Call, ...]:
    return tuple(Call(row["name"], json.loads(row["arguments"])) for row in rows)


def _plain(value: Any) -> Json:
    """The nearest JSON: mappings with text keys, lists, else the value's text."""
    if isinstance(value, Mapping):
        return {key if isinstance(key, str) else to_json(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(item) for item in value), key=to_json)
    return value if value is None or isinstance(value, (str, int, float, bool)) else repr(value)
