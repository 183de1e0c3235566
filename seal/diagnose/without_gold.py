"""Labels of turns without a gold program: of conversations logged elsewhere (OpenAI-style messages), and of turns that
a grader judged.

What can be said without gold is said: broken calls, broken schemas, refusals, errors nobody repaired, loops. A logged
turn in which nothing of this shows is not proven right: it is `pass` with low confidence.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from seal.core.labels import SUCCESSES, Label
from seal.core.types import REFUSALS, Diagnosis, Step, ToolDoc, Verdict
from seal.diagnose.label_rules import ARGUMENT_ERRORS
from seal.diagnose.messages import Conversation
from seal.diagnose.primary_label import Finding, labels_of
from seal.diagnose.schema import schema_faults
from seal.diagnose.turn_evidence import Attempt, Garbled, attempts_of, garbled_of, key

LOOP = 3  # the same call with the same result so often is a loop
NOTHING_SEEN, NO_CALL, NO_RESULT = 0.3, 0.2, 0.1


def diagnose_log(talk: Conversation) -> list[Diagnosis]:
    """Labels of every user turn, the primary one first."""
    rows = []
    for turn, steps in enumerate(talk.turns):
        places = [(turn, s, c) for s, step in enumerate(steps) for c in range(len(step.calls))]
        unanswered = frozenset(i for i, place in enumerate(places) if place in talk.unanswered)
        findings = findings_of(attempts_of(steps), garbled_of(steps), talk.docs, steps, unanswered)
        rows += labels_of(turn, findings)
    return rows


def explain_graded(verdict: Verdict, steps: Sequence[Step], docs: Mapping[str, ToolDoc], stop: str) -> list[Finding]:
    """`stop`: why the episode ended in this turn, "" if it did not. Never empty."""
    if "checker_error" in verdict.evidence:
        return [Finding(Label.CHECKER_ERROR, "grader", evidence={"error": verdict.evidence["checker_error"]})]
    attempts, garbled = attempts_of(steps), garbled_of(steps, stop)
    if verdict.valid:
        erred = bool(garbled) or any(attempt.error for attempt in attempts)
        label = Label.PASS if attempts or garbled else Label.CORRECT_ABSTENTION
        return [Finding(label, "recovered" if erred else "")]
    found = [f for f in findings_of(attempts, garbled, docs, steps) if f.label not in SUCCESSES]
    last = steps[-1].step if steps else -1
    if stop:
        found.append(Finding(Label.BUDGET_EXHAUSTED, stop, step=last))
    if not found and not attempts:
        found.append(Finding(Label.MISSING_TOOL_CALL, "no_call"))
    return found or [Finding(Label.STATE_MISMATCH, "graded", step=last)]


def findings_of(
    attempts: Sequence[Attempt],
    garbled: Sequence[Garbled],
    docs: Mapping[str, ToolDoc],
    steps: Sequence[Step],
    unanswered: frozenset[int] = frozenset(),
) -> list[Finding]:
    """What a turn's calls show without gold; `pass` with low confidence where they show nothing.

    `unanswered`: indices of attempts whose result is not known. A failing call is repaired by a later step alone: what
    was called beside it had not seen it fail.
    """
    found = []
    successes = [a for i, a in enumerate(attempts) if not a.error and i not in unanswered]
    worked = {a.call.name: a.step for a in successes}  # the last step at which a tool did
    last_worked, last = max(worked.values(), default=-1), attempts[-1].step if attempts else -1
    for g in garbled:
        if last_worked <= g.step:
            found.append(Finding(Label.INVALID_TOOL_CALL, g.kind, step=g.step))
    failures: Counter[str] = Counter()
    for attempt in attempts:
        unknown = attempt.error == "unknown_tool" or bool(docs and attempt.call.name not in docs)
        if (last_worked if unknown else worked.get(attempt.call.name, -1)) > attempt.step:
            continue
        found += _of_call(attempt, unknown, docs)
        if attempt.error:
            failures[key(attempt.call)] += 1
            detail = "repeated" if failures[key(attempt.call)] > 1 else "ignored" if last > attempt.step else "gave_up"
            name, step = attempt.call.name, attempt.step
            found.append(Finding(Label.RECOVERY_FAILURE, detail, name, step=step, confidence=0.7))
    loops = Counter((key(attempt.call), attempt.raw) for attempt in attempts)
    if attempts and max(loops.values()) >= LOOP:
        found.append(Finding(Label.BUDGET_EXHAUSTED, "call_loop", attempts[-1].call.name, confidence=0.7))
    if found:
        return found
    if unanswered:
        return [Finding(Label.PASS, "no_result", step=attempts[min(unanswered)].step, confidence=NO_RESULT)]
    if attempts:
        erred = len(successes) < len(attempts) or bool(garbled)
        return [Finding(Label.PASS, "recovered" if erred else "no_failure_seen", confidence=NOTHING_SEEN)]
    return [Finding(Label.PASS, "no_call", step=steps[-1].step if steps else -1, confidence=NO_CALL)]


def _of_call(attempt: Attempt, unknown: bool, docs: Mapping[str, ToolDoc]) -> list[Finding]:
    """What is wrong with one call by itself; less sure where it ran all the same."""
    name, step = attempt.call.name, attempt.step
    if unknown:
        sure = 1.0 if attempt.error else 0.6
        return [Finding(Label.INVALID_TOOL_CALL, "unknown_tool", name, step=step, confidence=sure)]
    broken = schema_faults(attempt.call, docs[name], attempt.error == "wrong_type") if name in docs else {}
    sure = 0.95 if attempt.error else 0.6
    found = [Finding(Label.ARGUMENT_MISMATCH, fault, name, param, step, sure) for param, fault in broken.items()]
    evidence = {"error": attempt.raw[:200]} if attempt.error else {}
    if attempt.error in REFUSALS:
        found.append(Finding(Label.CONSTRAINT_VIOLATION, attempt.error, name, "", step, 0.8, evidence))
    elif attempt.error in ARGUMENT_ERRORS and not broken:
        detail = ARGUMENT_ERRORS[attempt.error]
        found.append(Finding(Label.ARGUMENT_MISMATCH, detail, name, "", step, 0.8, evidence))
    return found
