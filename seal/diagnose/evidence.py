"""What one user turn shows, gathered before anything is judged. Pure: everything executed is handed in."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from seal.core.types import Call, Fact, Json, Result, Step, ToolDoc


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call that ran. `error` is its error kind ("": it succeeded); `wrote`: it changed the public state."""

    step: int
    call: Call
    error: str
    raw: str
    wrote: bool = False


@dataclass(frozen=True, slots=True)
class Goal:
    """One gold call and the attempt that stands for it (-1: none).

    how: exact (same call), same_tool (other arguments), invalid_tool (a tool that is not there in its place), text
    (something that was no call in its place), other_tool (a tool that served no gold call), "" (nothing).
    `met`: it was done, or what it is for (its effect, its information) was reached otherwise.
    """

    call: Call
    raw: str = ""
    wrote: bool = False
    how: str = ""
    attempt: int = -1
    met: bool = False


@dataclass(frozen=True, slots=True)
class Garbled:
    """A policy output that is no call."""

    step: int
    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class TurnEvidence:
    """Everything the rules may look at. `stop`: why the episode ended in this turn, "" if it did not.

    `said`: user messages up to this one; `earlier`: what was said and shown before this turn; `told`: results shown up
    to the end of this turn. `facts` are the rules of the tools involved, `known` every tool of the task at any time.
    """

    turn: int
    goals: tuple[Goal, ...]
    attempts: tuple[Attempt, ...]
    garbled: tuple[Garbled, ...]
    docs: Mapping[str, ToolDoc]
    known: frozenset[str]
    facts: Mapping[tuple[str, str], Mapping[str, Json]]
    state_ok: bool
    response_ok: bool
    said: str = ""
    earlier: str = ""
    told: str = ""
    last_step: int = -1
    stop: str = ""

    @property
    def unmet(self) -> list[Goal]:
        return [goal for goal in self.goals if not goal.met]

    @property
    def unused(self) -> list[int]:
        """Indices of attempts that stand for no gold call by name."""
        used = {goal.attempt for goal in self.goals if goal.how in ("exact", "same_tool")}
        return [i for i in range(len(self.attempts)) if i not in used]


def attempts_of(steps: Sequence[Step], results: Sequence[Result] = (), wrote: Sequence[bool] = ()) -> list[Attempt]:
    """The calls of a turn's steps in order; `results` and `wrote` of a re-execution replace the stored results."""
    calls = [(step.step, call) for step in steps for call in step.calls]
    results = results or [result for step in steps for result in step.results]
    wrote = wrote or [False] * len(calls)
    return [
        Attempt(step, call, result.error_kind, result.raw, changed)
        for (step, call), result, changed in zip(calls, results, wrote, strict=True)
    ]


def garbled_of(steps: Sequence[Step], stop: str = "") -> list[Garbled]:
    """Outputs that are no calls. One that the token limit cut is the limit's doing and left out."""
    found = [Garbled(step.step, error.kind, step.text) for step in steps for error in step.errors]
    last = steps[-1].step if steps else -1
    return [g for g in found if not (stop == "turn_token_limit" and g.step == last)]


def facts_by_place(facts: Sequence[Fact]) -> dict[tuple[str, str], dict[str, Json]]:
    """(tool, parameter) -> {kind: value}."""
    places: dict[tuple[str, str], dict[str, Json]] = {}
    for fact in facts:
        places.setdefault((fact.tool, fact.param), {})[fact.kind] = fact.value
    return places


def same_call(a: Call, b: Call, doc: ToolDoc | None = None) -> bool:
    """Whether two calls say the same; an argument at its documented default counts as left out."""
    return a.name == b.name and key(a, doc) == key(b, doc)


def key(call: Call, doc: ToolDoc | None = None) -> str:
    """A canonical text of a call."""
    defaults = {param.name: param.default for param in doc.params if param.default is not None} if doc else {}
    arguments = {
        name: value
        for name, value in call.arguments.items()
        if not (name in defaults and defaults[name] == value and type(defaults[name]) is type(value))
    }
    return f"{call.name} {json.dumps(arguments, sort_keys=True, default=str)}"


def align(evidence: TurnEvidence) -> TurnEvidence:
    """Decide which attempt stands for which gold call, most certain pairs first."""
    goals, free = list(evidence.goals), set(range(len(evidence.attempts)))
    attempts, docs = evidence.attempts, evidence.docs

    def pair(i: int, how: str, attempt: int) -> None:
        goals[i] = replace(goals[i], how=how, attempt=attempt)
        free.discard(attempt)

    keys = [key(attempt.call, docs.get(attempt.call.name)) for attempt in attempts]
    for i, goal in enumerate(goals):
        wanted = key(goal.call, docs.get(goal.call.name))
        same = [j for j in sorted(free) if keys[j] == wanted]
        if same:
            pair(i, "exact", next((j for j in same if not attempts[j].error or attempts[j].raw == goal.raw), same[0]))
    for i, goal in enumerate(goals):
        rivals = [j for j in free if attempts[j].call.name == goal.call.name]
        if not goal.how and rivals:
            pair(i, "same_tool", max(rivals, key=lambda j: (_shared(goal.call, attempts[j].call), j)))
    gold = {goal.call.name for goal in goals}
    for j in [j for j in sorted(free) if is_invalid(attempts[j], docs, gold)]:
        open_goals = [i for i, goal in enumerate(goals) if not goal.how]
        if open_goals:
            pair(max(open_goals, key=lambda i: (_shared(goals[i].call, attempts[j].call), -i)), "invalid_tool", j)
    named = [i for i, goal in enumerate(goals) if not goal.how and _names(evidence.garbled, goal.call.name)]
    if evidence.garbled:
        open_goals = [i for i, goal in enumerate(goals) if not goal.how]
        for i in named or open_goals:
            goals[i] = replace(goals[i], how="text")
    others = [j for j in sorted(free) if attempts[j].call.name not in gold]
    for i, goal in enumerate(goals):
        if not goal.how and others:
            pair(i, "other_tool", others.pop(0))
    return replace(evidence, goals=tuple(replace(goal, met=_met(i, goals, evidence)) for i, goal in enumerate(goals)))


def is_invalid(attempt: Attempt, docs: Mapping[str, ToolDoc], gold: set[str]) -> bool:
    """Whether the tool is not there: unknown, or not yet available (the gold program's own tools always are)."""
    return attempt.error == "unknown_tool" or (attempt.call.name not in docs and attempt.call.name not in gold)


def _shared(a: Call, b: Call) -> int:
    return sum(1 for name, value in a.arguments.items() if name in b.arguments and b.arguments[name] == value)


def _names(garbled: Sequence[Garbled], tool: str) -> bool:
    return any(tool in g.text for g in garbled)


def _met(i: int, goals: Sequence[Goal], evidence: TurnEvidence) -> bool:
    """Done as asked; or its effect is there; or its information is, and no later gold call broke for want of it."""
    if done_as_asked(goals[i], evidence.attempts):
        return True
    if goals[i].wrote:
        return evidence.state_ok
    broke = any(goal.how == "exact" and not done_as_asked(goal, evidence.attempts) for goal in goals[i + 1 :])
    return evidence.response_ok and not broke


def done_as_asked(goal: Goal, attempts: Sequence[Attempt]) -> bool:
    """Whether the gold call itself ran, and as well as it does in the gold program."""
    if goal.how != "exact":
        return False
    return not attempts[goal.attempt].error or attempts[goal.attempt].raw == goal.raw
