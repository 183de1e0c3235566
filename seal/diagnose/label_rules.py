"""From evidence to labels. Deterministic; every finding names the evidence it rests on.

A gold call that was not done is explained by the attempt that stands for it; a tool's refusal is the caller's fault
only where another fault of the same turn does not explain it. What the verifier alone sees (state or information
differs) is a finding of its own only where nothing executable explains it, else a *symptom*, kept with low confidence.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from seal.core.labels import Label
from seal.core.types import REFUSALS, Json
from seal.diagnose.primary_label import Finding
from seal.diagnose.recovery import recovery
from seal.diagnose.schema import is_referent, occurs, schema_faults
from seal.diagnose.turn_evidence import Attempt, Goal, TurnEvidence, done_as_asked, is_invalid, key
from seal.env.spoken_answers import RESPOND

SYMPTOM = "symptom"
SYMPTOM_CONFIDENCE = 0.45
# Error kinds that say which rule of the schema was broken, and their detail.
ARGUMENT_ERRORS: Mapping[str, str] = {
    "missing_argument": "missing_parameter",
    "unexpected_argument": "unexpected_parameter",
    "wrong_type": "type",
    "invalid_value": "invalid_value",
}


def explain(ev: TurnEvidence) -> list[Finding]:
    """Everything that is wrong with a failing turn; never empty."""
    if not ev.goals:
        return list(_acted(ev)) or [_verdict_only(ev)]
    found = [finding for goal in ev.unmet for finding in _unmet(goal, ev)]
    found += _extra_writes(ev)
    if not found:  # then what looked reached otherwise was not
        ev = replace(ev, goals=tuple(replace(goal, met=done_as_asked(goal, ev.attempts)) for goal in ev.goals))
        found += [finding for goal in ev.unmet for finding in _unmet(goal, ev)]
    if ev.stop:
        found.append(Finding(Label.BUDGET_EXHAUSTED, ev.stop, step=ev.last_step))
    if not found:
        if not ev.attempts and not ev.garbled:
            return [Finding(Label.MISSING_TOOL_CALL, "no_call", ev.goals[0].call.name)]
        found.append(_verdict_only(ev))
    found += recovery(ev)
    return _unique(found + _symptoms(ev, found))


def acted_where_none_was_due(ev: TurnEvidence) -> list[Finding]:
    """The findings of a turn without gold calls, whatever its verdict; empty: the policy abstained."""
    return _unique(list(_acted(ev)))


def _acted(ev: TurnEvidence) -> Iterator[Finding]:
    for g in ev.garbled:
        yield Finding(Label.INVALID_TOOL_CALL, g.kind, step=g.step)
    for attempt in ev.attempts:
        name = attempt.call.name
        if attempt.error == "unknown_tool" or name not in ev.known:
            yield Finding(Label.INVALID_TOOL_CALL, "unknown_tool", name, step=attempt.step)
        detail = "withheld_tool" if name in ev.known and name not in ev.docs else "write" if attempt.wrote else "acted"
        yield Finding(Label.SPURIOUS_TOOL_CALL, detail, name, step=attempt.step)


def _unmet(goal: Goal, ev: TurnEvidence) -> Iterator[Finding]:
    attempt = ev.attempts[goal.attempt] if goal.attempt >= 0 else None
    if goal.how == "exact":
        yield _refused_as_is(goal, attempt, ev)
    elif goal.how == "same_tool" and goal.call.name == RESPOND:
        yield Finding(Label.RESPONSE_MISMATCH, "wrong_answer", RESPOND, step=attempt.step, confidence=0.9)
    elif goal.how == "same_tool":
        yield from _other_arguments(goal, attempt, ev)
    elif goal.how == "invalid_tool":
        detail = "unavailable_tool" if attempt.call.name in ev.known else "unknown_tool"
        yield Finding(Label.INVALID_TOOL_CALL, detail, attempt.call.name, step=attempt.step)
    elif goal.how == "text":
        g = next((g for g in ev.garbled if goal.call.name in g.text), ev.garbled[-1])
        yield Finding(Label.INVALID_TOOL_CALL, g.kind, goal.call.name, step=g.step)
    elif not ev.stop:
        detail = "other_tool" if attempt else "too_few" if ev.attempts else "no_call"
        evidence = {"called": attempt.call.name} if attempt else {}
        yield Finding(Label.MISSING_TOOL_CALL, detail, goal.call.name, evidence=evidence)


def _refused_as_is(goal: Goal, attempt: Attempt, ev: TurnEvidence) -> Finding:
    """The gold call itself failed: something it builds on was not there yet, or not any more.

    Where that something was tried in this turn and went wrong, the refusal only follows from it.
    """
    where = {"tool": attempt.call.name, "step": attempt.step, "evidence": {"error": attempt.raw[:200]}}
    follows = any(other.how in ("same_tool", "invalid_tool", "text") and not other.met for other in _before(goal, ev))
    if attempt.error in REFUSALS:
        confidence = SYMPTOM_CONFIDENCE if follows else 1.0
        return Finding(Label.CONSTRAINT_VIOLATION, attempt.error, **where, confidence=confidence)
    if _out_of_order(goal, ev):
        return Finding(Label.CONSTRAINT_VIOLATION, "order", **where)
    return Finding(Label.STATE_MISMATCH, "wrong_context", **where, confidence=0.8)


def _out_of_order(goal: Goal, ev: TurnEvidence) -> bool:
    """Whether a gold call and this one were made, but in the other order."""
    i = len(_before(goal, ev))
    others = [(j, other) for j, other in enumerate(ev.goals) if j != i and other.how == "exact"]
    return any((other.attempt > goal.attempt) == (j < i) for j, other in others)


def _before(goal: Goal, ev: TurnEvidence) -> list[Goal]:
    return list(ev.goals[: next(i for i, other in enumerate(ev.goals) if other is goal)])


def _other_arguments(goal: Goal, attempt: Attempt, ev: TurnEvidence) -> Iterator[Finding]:
    name = goal.call.name
    doc = ev.docs.get(name)
    gold_faults = schema_faults(goal.call, doc) if doc else {}
    arguments, gold_arguments = attempt.call.arguments, goal.call.arguments
    # a float for an integer is wrong where the tool refused it, or where nothing else tells the call from the gold one
    exact = attempt.error == "wrong_type" or arguments == gold_arguments
    broken = schema_faults(attempt.call, doc, exact) if doc else {}
    for parameter in dict.fromkeys((*arguments, *gold_arguments)):
        given, wanted = arguments.get(parameter), gold_arguments.get(parameter)
        retyped = type(given) is not type(wanted)  # the gold program itself breaks a documented type here and there
        both = parameter in arguments and parameter in gold_arguments
        if both and given == wanted and not (retyped and parameter in broken):
            continue
        where = {"tool": name, "parameter": parameter, "step": attempt.step}
        if parameter in broken and (parameter not in gold_faults or retyped):
            yield Finding(Label.ARGUMENT_MISMATCH, broken[parameter], **where)
        elif parameter not in arguments:
            yield Finding(Label.ARGUMENT_MISMATCH, "missing_parameter", **where, confidence=0.9)
        else:
            yield _other_value(parameter, given, wanted, attempt, goal, ev)
    if attempt.error in REFUSALS and any(not other.met for other in _before(goal, ev)):
        yield Finding(Label.CONSTRAINT_VIOLATION, attempt.error, name, step=attempt.step, confidence=0.9)


def _other_value(parameter: str, given: Json, wanted: Json, attempt: Attempt, goal: Goal, ev: TurnEvidence) -> Finding:
    """A value in the right form that is not the gold one: a literal altered, or another thing meant?"""
    where = {"tool": goal.call.name, "parameter": parameter, "step": attempt.step}
    rules = ev.facts.get((goal.call.name, parameter), {})
    if "enum" in rules:
        return Finding(Label.ARGUMENT_MISMATCH, "enum_value", **where)
    prefix = rules.get("format")
    if isinstance(prefix, str) and isinstance(given, str) and isinstance(wanted, str) and wanted.startswith(prefix):
        if not given.startswith(prefix):
            return Finding(Label.ARGUMENT_MISMATCH, "format", **where)
        given, wanted = given.removeprefix(prefix), wanted.removeprefix(prefix)
    if wanted is None:
        return Finding(Label.ARGUMENT_MISMATCH, "unexpected_value", **where, confidence=0.9)
    doc = ev.docs.get(goal.call.name)
    amount = doc and any(p.name == parameter and p.type in ("number", "float") for p in doc.params)
    if not amount and is_referent(given) and occurs(given, ev.earlier_text):
        return Finding(Label.STATE_MISMATCH, "wrong_referent", **where, confidence=0.9)
    if occurs(wanted, ev.result_text) and not occurs(wanted, ev.user_text):
        return Finding(Label.STATE_MISMATCH, "stale_value", **where, confidence=0.8)
    detail = ARGUMENT_ERRORS.get(attempt.error, "altered_literal" if occurs(wanted, ev.user_text) else "wrong_value")
    return Finding(Label.ARGUMENT_MISMATCH, detail, **where, confidence=0.9)


def _extra_writes(ev: TurnEvidence) -> Iterator[Finding]:
    """Writes that nobody asked for. The repeats of a call that used up the steps are the loop's, not new acts."""
    if ev.state_ok:
        return
    wrong = {goal.attempt for goal in ev.goals if goal.how == "other_tool"}
    keys = Counter(key(attempt.call) for attempt in ev.attempts) if ev.stop else {}
    for i in ev.unused:
        attempt = ev.attempts[i]
        name, step = attempt.call.name, attempt.step
        if not attempt.wrote or (keys and keys[key(attempt.call)] > 2):
            continue
        if is_invalid(attempt, ev.docs, {goal.call.name for goal in ev.goals}):
            yield Finding(Label.INVALID_TOOL_CALL, "unavailable_tool", name, step=step)
        detail = "other_tool" if i in wrong else "extra_call"
        yield Finding(Label.SPURIOUS_TOOL_CALL, detail, name, step=step, confidence=0.9)


def _verdict_only(ev: TurnEvidence) -> Finding:
    """Nothing executable is wrong: the calls ran, and what came of them differs."""
    order = [goal.attempt for goal in ev.goals if goal.how == "exact"]
    detail = "order" if order != sorted(order) else "unexplained" if not ev.state_ok else "not_retrieved"
    label = Label.STATE_MISMATCH if not ev.state_ok else Label.RESPONSE_MISMATCH
    tool = next((g.call.name for g in ev.goals if g.how == "exact" and ev.attempts[g.attempt].raw != g.raw), "")
    return Finding(label, detail, tool, confidence=0.8 if detail == "order" else 0.6)


def _symptoms(ev: TurnEvidence, found: list[Finding]) -> list[Finding]:
    labels = {finding.label for finding in found}
    if not ev.state_ok and Label.STATE_MISMATCH not in labels:
        return [Finding(Label.STATE_MISMATCH, SYMPTOM, confidence=SYMPTOM_CONFIDENCE)]
    if ev.state_ok and not ev.response_ok and Label.RESPONSE_MISMATCH not in labels:
        return [Finding(Label.RESPONSE_MISMATCH, SYMPTOM, confidence=SYMPTOM_CONFIDENCE)]
    return []


def _unique(findings: list[Finding]) -> list[Finding]:
    """One finding per (label, detail, tool, parameter): the first."""
    seen: dict[tuple[str, str, str, str], Finding] = {}
    for finding in findings:
        seen.setdefault((finding.label, finding.detail, finding.tool, finding.parameter), finding)
    return list(seen.values())
