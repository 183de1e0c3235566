"""Labels of a turn that a grader judged without a gold program: what the calls themselves show, else its verdict."""

from collections.abc import Mapping, Sequence

from seal.core.labels import SUCCESSES, Label
from seal.core.types import Step, ToolDoc, Verdict
from seal.diagnose.evidence import attempts_of, garbled_of
from seal.diagnose.finding import Finding
from seal.diagnose.log import findings_of


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
