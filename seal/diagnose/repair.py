"""A failing turn with one of its faults put right and everything else as it was played: the counterfactual."""

from collections.abc import Sequence

from seal.core.labels import Label
from seal.core.types import Call, Diagnosis
from seal.diagnose.turn_evidence import Goal, TurnEvidence

Calls = list[Call]
Rows = Sequence[Diagnosis]


def repaired(ev: TurnEvidence, label: Label, rows: Rows) -> Calls | None:
    """The calls of a turn with what `rows` (all of one label) name repaired by gold's; None where that changes nothing.

    A label can take several rows to say: a misspelt argument is one too many and one missing.
    """
    calls = [attempt.call for attempt in ev.attempts]
    found = _repair(ev, label, rows, list(calls))
    return None if found == calls else found


def _repair(ev: TurnEvidence, label: Label, rows: Rows, calls: Calls) -> Calls:
    if label == Label.SPURIOUS_TOOL_CALL:
        return _without(ev, rows, calls)
    if label == Label.BUDGET_EXHAUSTED:  # the repeats go, what they left no room for is made
        once = [call for i, call in enumerate(calls) if call not in calls[:i]]
        return once + [goal.call for goal in ev.unmet if goal.call not in once]
    if label == Label.RESPONSE_MISMATCH:
        order = any(row.detail == "order" for row in rows)
        return calls + [goal.call for goal in ev.goals if not goal.met or order and not goal.wrote]
    if label == Label.MISSING_TOOL_CALL:
        tools = {row.tool for row in rows}
        return _put_in(ev, calls, [g for g in ev.unmet if g.call.name in tools and g.how in ("", "other_tool")])
    if label == Label.INVALID_TOOL_CALL:
        return _valid(ev, rows, calls)
    if label == Label.CONSTRAINT_VIOLATION:
        return _in_order(ev, rows[0], calls)
    if label == Label.RECOVERY_FAILURE:
        return _retried(ev, rows[0], calls)
    if any(row.parameter for row in rows):  # argument_mismatch, and a wrong referent or stale value
        return _with_arguments(ev, rows, calls)
    if label == Label.STATE_MISMATCH:  # the order, or a context that an earlier call should have made
        return [goal.call for goal in ev.goals] or calls
    return calls


def _with_arguments(ev: TurnEvidence, rows: Rows, calls: Calls) -> Calls:
    for goal in ev.unmet:
        if goal.how != "same_tool":
            continue
        arguments, gold = dict(calls[goal.attempt].arguments), goal.call.arguments
        there = goal.call.name, ev.attempts[goal.attempt].step
        for name in [row.parameter for row in rows if (row.tool, row.step) == there]:
            arguments.pop(name, None)
            arguments |= {name: gold[name]} if name in gold else {}
        calls[goal.attempt] = Call(goal.call.name, arguments)
    return calls


def _valid(ev: TurnEvidence, rows: Rows, calls: Calls) -> Calls:
    """The gold calls in the place of those to tools that are not there, and of texts; an act without a goal goes."""
    tools = {row.tool for row in rows}
    wrong = [goal for goal in ev.unmet if goal.how == "invalid_tool" and ev.attempts[goal.attempt].call.name in tools]
    for goal in wrong:
        calls[goal.attempt] = goal.call
    texts = [goal for goal in ev.unmet if goal.how == "text" and goal.call.name in tools]
    return _put_in(ev, calls, texts) if wrong or texts else _without(ev, rows, calls)


def _without(ev: TurnEvidence, rows: Rows, calls: Calls) -> Calls:
    gone = {(row.tool, row.step) for row in rows}
    pairs = zip(ev.attempts, calls, strict=True)
    return [call for attempt, call in pairs if (attempt.call.name, attempt.step) not in gone]


def _in_order(ev: TurnEvidence, row: Diagnosis, calls: Calls) -> Calls:
    """Before the call that was refused, every gold call that comes before it in the gold program."""
    for i, goal in enumerate(ev.goals):
        if goal.attempt < 0 or (goal.call.name, ev.attempts[goal.attempt].step) != (row.tool, row.step):
            continue
        done = [other.call for other in ev.goals[:i] if other.how == "exact" and other.attempt < goal.attempt]
        first = [other.call for other in ev.goals[:i] if other.call not in done]
        return [*calls[: goal.attempt], *first, *calls[goal.attempt :]]
    return calls


def _retried(ev: TurnEvidence, row: Diagnosis, calls: Calls) -> Calls:
    """After the last error about a tool, the gold call that it stood for."""
    goals = [goal for goal in ev.unmet if not row.tool or goal.call.name == row.tool or goal.how == "invalid_tool"]
    after = max((i for i, a in enumerate(ev.attempts) if a.error and a.step <= row.step), default=-1) + 1
    return [*calls[:after], *(goal.call for goal in goals[:1]), *calls[after:]]


def _put_in(ev: TurnEvidence, calls: Calls, goals: Sequence[Goal]) -> Calls:
    """The gold calls of these goals, each after what was done for the goals before it."""
    places = []
    for goal in goals:
        at = next(i for i, other in enumerate(ev.goals) if other is goal)
        before = [other.attempt for other in ev.goals[:at] if other.attempt >= 0 and other.how != "other_tool"]
        places.append((max(before, default=-1) + 1, goal.call))
    for at, call in reversed(places):
        calls.insert(at, call)
    return calls
