"""Single nouns of seal.core.types as rows, and back. Pure.

What may be any JSON is stored as JSON text, keys sorted. (A tuple comes back as a list, and keys as text: JSON has no
others.) Lone surrogates, which a policy can write and no file can hold, are stored as their escapes.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from seal.core.types import Call, CallError, Diagnosis, Json, Result, Rollout, Step, Task, Tokens, UserTurn, Verdict
from seal.store.schemas import TABLES

Row = dict[str, Json]
_BARE = ("prompt_ids", "completion_ids", "loss_mask")


def to_json(value: Any, sort: bool = True) -> str:
    """JSON text on one line, keys sorted (as given without `sort`); what is no JSON as the nearest there is."""
    try:
        text = json.dumps(value, sort_keys=sort, ensure_ascii=False)
    except TypeError:
        text = json.dumps(_plain(value), sort_keys=sort, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode()


def trajectory_row(r: Rollout, task: Task | None) -> Row:
    return {
        "task_id": r.task_id,
        "category": task.category if task else None,
        "sample": r.sample,
        "seed": r.seed,
        "policy_hash": r.policy_hash,
        "interface_hash": r.interface_hash,
        "interface_mode": r.mode,
        "dropped_item": r.dropped,
        "n_turns": len(task.turns) if task else None,
        "n_turns_reached": max((step.turn for step in r.steps), default=-1) + 1,
        "n_steps": len(r.steps),
        "n_tokens": sum(r.tokens.loss_mask),
        "stop_reason": r.stop_reason,
    }


def step_row(step: Step) -> Row:
    return {
        "turn": step.turn,
        "step": step.step,
        "text": step.text,
        "calls": calls_rows(step.calls),
        "errors": [{"kind": error.kind, "message": error.message} for error in step.errors],
        "results": [{"shown": r.shown, "raw": r.raw, "error_kind": r.error_kind} for r in step.results],
    }


def step_of(row: Row) -> Step:
    return Step(
        turn=row["turn"],
        step=row["step"],
        text=row["text"],
        calls=calls_of(row["calls"]),
        errors=tuple(CallError(**error) for error in row["errors"]),
        results=tuple(Result(**result) for result in row["results"]),
    )


def tokens_row(tokens: Tokens) -> Row:
    row = {name: getattr(tokens, name) for name in Tokens.__dataclass_fields__}
    return {**row, **{f"bare_{n}": None for n in _BARE if row[f"bare_{n}"] == row[n]}}


def tokens_of(row: Row) -> Tokens:
    lists = {name: tuple(row[name] or ()) for name in Tokens.__dataclass_fields__}
    return Tokens(**{**lists, **{f"bare_{n}": lists[n] for n in _BARE if row[f"bare_{n}"] is None}})


def diagnosis_row(d: Diagnosis) -> Row:
    return {
        "label": str(d.label),
        "detail": d.detail,
        "primary": d.primary,
        "root": d.root,
        "tool": d.tool,
        "parameter": d.parameter,
        "step": d.step,
        "evidence": to_json(d.evidence),
        "confidence": float(d.confidence),
    }


def calls_rows(calls: Iterable[Call]) -> list[Row]:
    return [{"name": call.name, "arguments": to_json(call.arguments)} for call in calls]


def calls_of(rows: Iterable[Row]) -> tuple[Call, ...]:
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
