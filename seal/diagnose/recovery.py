"""An error was shown: did the policy repair it, repeat it, ignore it or give up?"""

from seal.core.labels import Label
from seal.core.types import Call
from seal.diagnose.primary_label import Finding
from seal.diagnose.turn_evidence import Attempt, TurnEvidence, key

REPEATED, IGNORED, GAVE_UP = 1.0, 0.9, 0.7
UNSEEN = 0.4  # the record ends with the error: whether the policy saw it is not known


def recovery(ev: TurnEvidence) -> list[Finding]:
    """At most one recovery_failure: the worst thing that was done about an error that stayed unrepaired."""
    errors = sorted(_unrepaired(ev), key=lambda shown: shown.step)
    if not errors:
        return []
    calls = [(key(shown.call), shown) for shown in errors if shown.call.name]
    repeats = [b for one, a in calls for other, b in calls if one == other and b.step > a.step]
    last = errors[-1]
    if repeats:
        last, detail, confidence = repeats[-1], "repeated", REPEATED
    elif any(attempt.step > last.step for attempt in ev.attempts):
        detail, confidence = "ignored", IGNORED
    elif ev.stop:
        return []
    else:
        detail, confidence = "gave_up", GAVE_UP if ev.last_step > last.step else UNSEEN
    return [Finding(Label.RECOVERY_FAILURE, detail, last.call.name, step=last.step, confidence=confidence)]


def _unrepaired(ev: TurnEvidence) -> list[Attempt]:
    """Failed calls, and outputs that were none, as calls of no tool."""
    open_tools = {goal.call.name for goal in ev.unmet}
    stand_ins = {goal.attempt for goal in ev.unmet}
    failed = [a for i, a in enumerate(ev.attempts) if a.error and (a.call.name in open_tools or i in stand_ins)]
    texts = ev.garbled if any(goal.how == "text" for goal in ev.unmet) else ()
    return failed + [Attempt(g.step, Call("", {}), g.kind, g.text) for g in texts]
