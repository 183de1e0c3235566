"""Conversations that were not produced here: OpenAI-style messages with tool calls and results, without gold.

What can be said without gold is said: broken calls, broken schemas, refusals, errors nobody repaired, loops. A turn in
which nothing of this shows is not proven right: it is `pass` with low confidence.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from seal.core.labels import Label
from seal.core.types import Call, CallError, Diagnosis, Json, Param, Result, Step, ToolDoc
from seal.diagnose.evidence import Attempt, Garbled, attempts_of, garbled_of, key
from seal.diagnose.finding import Finding
from seal.diagnose.priority import primary
from seal.diagnose.rules import ARGUMENT_ERRORS, REFUSALS
from seal.diagnose.schema import schema_faults
from seal.tools.shapes import error_kind

LOOP = 3  # the same call with the same result so often is a loop
NOTHING_SEEN, NO_CALL = 0.3, 0.2


@dataclass(frozen=True, slots=True)
class Conversation:
    """`turns`: the steps after each user message. `docs` is empty where the log tells no schemas."""

    docs: Mapping[str, ToolDoc]
    turns: tuple[tuple[Step, ...], ...]


@dataclass(frozen=True, slots=True)
class Malformed:
    """A line that is no conversation: its number from 1, and why."""

    line: int
    reason: str


def read_log(lines: Iterable[str]) -> Iterator[tuple[int, Conversation | Malformed]]:
    """(line number, conversation or what is wrong with the line); empty lines are passed over."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield number, conversation(json.loads(line))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                yield number, Malformed(number, f"{type(error).__name__}: {error}"[:200])


def conversation(record: Json) -> Conversation:
    """Read {"messages": [...], "tools": [...]} or a bare list of messages. Raises ValueError where it is neither."""
    record = {"messages": record} if isinstance(record, list) else record
    if not isinstance(record, dict) or not isinstance(record.get("messages"), list):
        raise ValueError("no list of messages")
    results: dict[str, str] = {}
    for message in record["messages"]:
        if message["role"] == "tool":
            results[str(message.get("tool_call_id", len(results)))] = _text(message.get("content"))
    turns: list[list[Step]] = []
    answered = iter(list(results.values()))
    for message in record["messages"]:
        if message["role"] == "user":
            turns.append([])
        elif message["role"] == "assistant":
            if not turns:
                turns.append([])
            turns[-1].append(_step(message, len(turns) - 1, len(turns[-1]), results, answered))
    if not turns:
        raise ValueError("no user or assistant message")
    return Conversation({doc.name: doc for doc in map(_doc, record.get("tools") or ())}, tuple(map(tuple, turns)))


def diagnose_log(talk: Conversation) -> list[Diagnosis]:
    """Labels of every user turn, the primary one first."""
    rows = []
    for turn, steps in enumerate(talk.turns):
        findings = findings_of(attempts_of(steps), garbled_of(steps), talk.docs, steps)
        first = primary(findings)
        for i in sorted(range(len(findings)), key=lambda i: (i != first, i)):
            f = findings[i]
            where = {"tool": f.tool, "parameter": f.parameter, "step": f.step, "confidence": f.confidence}
            rows.append(Diagnosis(turn, f.label.value, f.detail, i == first, evidence=dict(f.evidence), **where))
    return rows


def findings_of(
    attempts: Sequence[Attempt], garbled: Sequence[Garbled], docs: Mapping[str, ToolDoc], steps: Sequence[Step]
) -> list[Finding]:
    """What a turn's calls show without gold; `pass` with low confidence where they show nothing."""
    found = []
    successes = [attempt for attempt in attempts if not attempt.error]
    for g in garbled:
        if not any(success.step > g.step for success in successes):
            found.append(Finding(Label.INVALID_TOOL_CALL, g.kind, step=g.step))
    failures: Counter[str] = Counter()
    for i, attempt in enumerate(attempts):
        name, step = attempt.call.name, attempt.step
        unknown = attempt.error == "unknown_tool" or bool(docs and name not in docs)
        repaired = any(not a.error and (unknown or a.call.name == name) for a in attempts[i + 1 :])
        if repaired:
            continue
        if unknown:
            found.append(Finding(Label.INVALID_TOOL_CALL, "unknown_tool", name, step=step))
        else:
            broken = schema_faults(attempt.call, docs[name]) if name in docs else []
            sure = 0.95 if attempt.error else 0.6
            found += [Finding(Label.ARGUMENT_MISMATCH, f.detail, name, f.parameter, step, sure) for f in broken]
            evidence = {"error": attempt.raw[:200]} if attempt.error else {}
            if attempt.error in REFUSALS:
                found.append(Finding(Label.CONSTRAINT_VIOLATION, attempt.error, name, "", step, 0.8, evidence))
            elif attempt.error in ARGUMENT_ERRORS and not broken:
                detail = ARGUMENT_ERRORS[attempt.error]
                found.append(Finding(Label.ARGUMENT_MISMATCH, detail, name, "", step, 0.8, evidence))
        if attempt.error:
            failures[key(attempt.call)] += 1
            later = any(a.step > step for a in attempts)
            detail = "repeated" if failures[key(attempt.call)] > 1 else "ignored" if later else "gave_up"
            found.append(Finding(Label.RECOVERY_FAILURE, detail, name, step=step, confidence=0.7))
    loops = Counter((key(attempt.call), attempt.raw) for attempt in attempts)
    if attempts and max(loops.values()) >= LOOP:
        found.append(Finding(Label.BUDGET_EXHAUSTED, "call_loop", attempts[-1].call.name, confidence=0.7))
    if found:
        return found
    if attempts:
        erred = len(successes) < len(attempts) or bool(garbled)
        return [Finding(Label.PASS, "recovered" if erred else "no_failure_seen", confidence=NOTHING_SEEN)]
    return [Finding(Label.PASS, "no_call", step=steps[-1].step if steps else -1, confidence=NO_CALL)]


def _step(message: Mapping[str, Json], turn: int, step: int, by_id: Mapping[str, str], answered: Iterator[str]) -> Step:
    calls, errors, results = [], [], []
    for tool_call in message.get("tool_calls") or ():
        function = tool_call.get("function") or tool_call
        arguments = function.get("arguments") or {}
        text = by_id[tool_call["id"]] if tool_call.get("id") in by_id else next(answered, "")
        try:
            arguments = json.loads(arguments) if isinstance(arguments, str) else arguments
        except ValueError as error:
            errors.append(CallError("syntax", str(error)))
            continue
        if not isinstance(arguments, dict):
            errors.append(CallError("not_object", f"arguments of {function['name']}"))
            continue
        calls.append(Call(str(function["name"]), arguments))
        results.append(Result(text, text, error_kind(text)))
    return Step(turn, step, _text(message.get("content")), tuple(calls), tuple(errors), tuple(results))


def _doc(tool: Mapping[str, Json]) -> ToolDoc:
    function = tool.get("function") or tool
    schema = function.get("parameters") or {}
    required = set(schema.get("required") or ())
    params = [
        Param(
            name,
            spec.get("type", "any") if isinstance(spec.get("type", "any"), str) else "any",
            name in required,
            spec.get("description", ""),
            tuple(spec.get("enum") or ()),
            spec.get("default"),
        )
        for name, spec in (schema.get("properties") or {}).items()
    ]
    return ToolDoc(function["name"], function.get("description", ""), tuple(params))


def _text(content: Json) -> str:
    """A message's content: text, or a list of text parts."""
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else "" if content is None else json.dumps(content)
