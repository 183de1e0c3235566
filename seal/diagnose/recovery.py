"""An error was shown: did the policy repair it, repeat it, ignore it or give up?"""

from collections.abc import Iterator
from dataclasses import dataclass

from seal.core.labels import Label
from seal.diagnose.primary_label import Finding
from seal.diagnose.turn_evidence import Attempt, TurnEvidence, key

REPEATED, IGNORED, GAVE_UP = 1.0, 0.9, 0.7
UNSEEN = 0.4  # the record ends with the error: whether the policy saw it is not known


@dataclass(frozen=True, slots=True)
class Shown:
    """An unrepaired error: of a call, or of an output that was none (tool "")."""

    step: int
    tool: str
    call: str


def recovery(ev: TurnEvidence) -> list[Finding]:
    """At most one recovery_failure: the worst thing that was done about an error that stayed unrepaired."""
    errors = sorted(_unrepaired(ev), key=lambda shown: shown.step)
    if not errors:
        return []
    repeats = [b for a in errors for b in errors if a.call and a.call == b.call and b.step > a.step]
    last = errors[-1]
    later = [attempt.step for attempt in ev.attempts if attempt.step > errors[0].step]
    if repeats:
        last, detail, confidence = repeats[-1], "repeated", REPEATED
    elif later and any(step > last.step for step in later):
        detail, confidence = "ignored", IGNORED
    elif ev.stop:
        return []
    else:
        detail, confidence = "gave_up", GAVE_UP if ev.last_step > last.step else UNSEEN
    return [Finding(Label.RECOVERY_FAILURE, detail, last.tool, step=last.step, confidence=confidence)]


def _unrepaired(ev: TurnEvidence) -> Iterator[Shown]:
    open_tools = {goal.call.name for goal in ev.unmet}
    stand_ins = {goal.attempt for goal in ev.unmet}
    for i, attempt in enumerate(ev.attempts):
        if attempt.error and (attempt.call.name in open_tools or i in stand_ins):
            yield _of(attempt)
    if any(goal.how == "text" for goal in ev.unmet):
        for g in ev.garbled:
            yield Shown(g.step, "", "")


def _of(attempt: Attempt) -> Shown:
    return Shown(attempt.step, attempt.call.name, key(attempt.call))
