"""Stored rollouts as spans of the OpenTelemetry GenAI conventions: rollout > user turn > tool call. Pure.

Source: github.com/open-telemetry/semantic-conventions-genai, docs/gen-ai (status: development): a rollout is
`invoke_workflow`, a user turn `invoke_agent`, a call `execute_tool`. What they have no word for is named `seal.*`.

The tables hold no clock (they replay to the byte), so times are made: one TICK for each policy output and each call, in
the order they happened. Ids are digests of the rollout's id: sent twice, a rollout is the same trace.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from seal.core.labels import FAILURES
from seal.core.types import Call, Diagnosis, Json, Result, Step
from seal.report.stored_rollouts import StoredRollout, Turn
from seal.store.rows import fields_of

TICK = 1_000_000  # nanoseconds
MOST = 10_000  # characters of a text
Attributes = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Span:
    """`parent` is 0 for the rollout's own span; times in nanoseconds; `error`: its kind, "" where none is."""

    name: str
    id: int
    parent: int
    start: int
    end: int
    attributes: Attributes = field(default_factory=dict)
    error: str = ""


def trace_id(rollout_id: str) -> int:
    """128 bits, never 0."""
    return _digest(rollout_id, 16)


def spans_of(rollout: StoredRollout, start: int, content: bool = False) -> list[Span]:
    """All spans of a rollout, its own first. `start`: nanoseconds since 1970; `content`: texts and evidence too."""
    rollout_id, now = rollout.row["rollout_id"], start
    root = _digest(f"{rollout_id}/", 8)
    found: list[Span] = []
    for turn in rollout.turns():
        spans = list(_turn(rollout, turn, root, now, content))
        now = spans[0].end
        found += spans
    failed = next((span.error for span in found if span.parent == root and span.error), "")
    error = failed or ("task_failed" if rollout.row["success"] is False else "")
    attributes = {**_common(rollout), **_rollout(rollout)}
    return [
        Span(_named("invoke_workflow", rollout.env), root, 0, start, max(now, start + TICK), attributes, error),
        *found,
    ]


def _turn(rollout: StoredRollout, turn: Turn, root: int, now: int, content: bool) -> Iterator[Span]:
    """The turn's span, then its calls'."""
    id_ = f"{rollout.row['rollout_id']}/{turn.number}"
    own, start, calls = _digest(id_, 8), now, []
    for step in turn.steps:
        now += TICK
        for i, call in enumerate(step.calls):
            result = step.results[i] if i < len(step.results) else None
            place = f"{id_}/{step.step}/{i}"
            blamed = [d for d in turn.diagnoses if d.tool == call.name and d.step in (-1, step.step)]
            attributes = {**_common(rollout), **_call(place, call, result, step, blamed, content)}
            error = result.error_kind if result else ""
            name = _named("execute_tool", call.name)
            calls.append(Span(name, _digest(place, 8), own, now, now + TICK, attributes, error))
            now += TICK
    verdict, primary = turn.verdict, next((d for d in turn.diagnoses if d.primary), None)
    failed = (verdict is not None and not verdict.valid) or (verdict is None and primary and primary.label in FAILURES)
    error = (primary.label if primary else "turn_failed") if failed else ""
    said = _texts(turn) if content else {}
    attributes = {**_common(rollout), **_agent(rollout, turn), **_found(turn, primary), **said}
    yield Span(_named("invoke_agent", "seal"), own, root, start, max(now, start + TICK), attributes, str(error))
    yield from calls


def _common(rollout: StoredRollout) -> Attributes:
    """On every span, because backends filter spans, not traces."""
    row = rollout.row
    found = {"gen_ai.conversation.id": row["rollout_id"], "seal.env": rollout.env}
    columns = ("round", "phase", "task_id", "category", "split", "interface_mode")
    return {**found, **{f"seal.{name}": row[name] for name in columns if row[name] is not None}}


def _rollout(rollout: StoredRollout) -> Attributes:
    row, labels = rollout.row, [d for d in rollout.diagnoses if d.primary and d.label in FAILURES]
    columns = ("train_step", "sample", "success", "progress", "stop_reason", "n_turns", "n_turns_reached", "n_steps",
               "policy_hash", "interface_hash", "dropped_item")  # fmt: skip
    return {
        "gen_ai.operation.name": "invoke_workflow",
        **({"gen_ai.workflow.name": rollout.env} if rollout.env else {}),
        "gen_ai.usage.output_tokens": row["n_tokens"],
        **{f"seal.{name}": row[name] for name in columns if row[name] not in (None, "")},
        "seal.labels": list(dict.fromkeys(str(d.label) for d in labels)),
        "seal.root_labels": list(dict.fromkeys(str(d.label) for d in labels if d.root)),
    }


def _agent(rollout: StoredRollout, turn: Turn) -> Attributes:
    row, errors = rollout.row, [error.kind for step in turn.steps for error in step.errors]
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "seal",
        "gen_ai.agent.name": "seal",
        "gen_ai.agent.version": row["policy_hash"],
        "gen_ai.request.model": row["policy_hash"],
        "gen_ai.request.seed": row["seed"],
        "seal.turn": turn.number,
        "seal.n_steps": len(turn.steps),
        **({"seal.call_errors": errors} if errors else {}),
    }


def _found(turn: Turn, primary: Diagnosis | None) -> Attributes:
    """The verdict; the primary label by itself; all labels as lists of one length, place by place."""
    found: Attributes = {}
    if turn.verdict:
        values = fields_of(turn.verdict, ("valid", "state_ok", "response_ok", "confidence"))
        found |= {f"seal.verdict.{name}": value for name, value in values.items()}
    if primary:
        values = fields_of(primary, ("detail", "tool", "parameter", "step", "root", "confidence"))
        found |= {"seal.label": str(primary.label), **{f"seal.label.{name}": value for name, value in values.items()}}
    return {**found, **_labels(turn.diagnoses)}


def _labels(diagnoses: Sequence[Diagnosis]) -> Attributes:
    if not diagnoses:
        return {}
    return {
        "seal.labels": [str(d.label) for d in diagnoses],
        "seal.details": [d.detail for d in diagnoses],
        "seal.tools": [d.tool for d in diagnoses],
        "seal.parameters": [d.parameter for d in diagnoses],
    }


def _call(
    place: str, call: Call, result: Result | None, step: Step, blamed: Sequence[Diagnosis], content: bool
) -> Attributes:
    found = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.name,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": place,
        "seal.turn": step.turn,
        "seal.step": step.step,
        **_labels(blamed),
    }
    if content:
        found["gen_ai.tool.call.arguments"] = _json(dict(call.arguments))
        if result:
            found["gen_ai.tool.call.result"] = _cut(result.shown)
    return found


def _texts(turn: Turn) -> Attributes:
    """What was said, by the conventions' schemas of messages, and the evidence of labels and verdict."""
    found: Attributes = {"gen_ai.input.messages": _json([_message("user", turn.user.message if turn.user else "")])}
    if turn.steps:
        last = _message("assistant", turn.steps[-1].text)
        found["gen_ai.output.messages"] = _json([{**last, "finish_reason": "stop"}])
    found["seal.evidence"] = [_json(dict(d.evidence)) for d in turn.diagnoses]
    return {**found, **({"seal.verdict.evidence": _json(dict(turn.verdict.evidence))} if turn.verdict else {})}


def _message(role: str, text: str) -> dict[str, Json]:
    return {"role": role, "parts": [{"type": "text", "content": _cut(text)}]}


def _named(operation: str, name: str) -> str:
    return f"{operation} {name}".strip()


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _cut(text: str) -> str:
    return text if len(text) <= MOST else f"{text[:MOST]}… ({len(text) - MOST:,} more characters)"


def _digest(text: str, size: int) -> int:
    """Ids of 0 mean "none", so there is none."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=size).digest(), "big") or 1
