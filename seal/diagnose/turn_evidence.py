"""What one user turn shows, gathered before anything is judged. Pure: everything executed is handed in."""

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

    `user_text`: user messages up to this one; `earlier_text`: what was said and shown before this turn; `result_text`:
    results shown up to the end of this turn. `facts` are the rules of the tools involved, `known` every tool of the
    task at any time.
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
    user_text: str = ""
    earlier_text: str = ""
    result_text: str = ""
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
    ran = zip(calls, results, wrote, strict=True)
    return [Attempt(step, call, result.error_kind, result.raw, changed) for (step, call), result, changed in ran]


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


def key(call: Call, doc: ToolDoc | None = None) -> str:
    """A canonical text: calls that say the same have one. An argument at its documented default counts as left out."""
    items = sorted(call.arguments.items())
    if defaults := {p.name: repr(p.default) for p in doc.params if p.default is not None} if doc else {}:
        items = [(name, value) for name, value in items if repr(value) != defaults.get(name, "None")]
    return f"{call.name} {items!r}"


def align(evidence: TurnEvidence) -> TurnEvidence:
    """Decide which attempt stands for which gold call, most certain pairs first."""
    attempts, docs = evidence.attempts, evidence.docs
    calls = [goal.call for goal in evidence.goals]
    how, stand_in = [""] * len(calls), [-1] * len(calls)
    free = set(range(len(attempts)))

    def pair(i: int, kind: str, attempt: int) -> None:
        how[i], stand_in[i] = kind, attempt
        free.discard(attempt)

    def unpaired() -> list[int]:
        return [i for i, kind in enumerate(how) if not kind]

    keys = [key(attempt.call, docs.get(attempt.call.name)) for attempt in attempts]
    for i, call in enumerate(calls):
        wanted = key(call, docs.get(call.name))
        same = [j for j in sorted(free) if keys[j] == wanted]
        if same:
            raw = evidence.goals[i].raw
            pair(i, "exact", next((j for j in same if not attempts[j].error or attempts[j].raw == raw), same[0]))
    for i in unpaired():
        rivals = [j for j in free if attempts[j].call.name == calls[i].name]
        if rivals:
            pair(i, "same_tool", max(rivals, key=lambda j: (_shared(calls[i], attempts[j].call), j)))
    names = {call.name for call in calls}
    for j in [j for j in sorted(free) if is_invalid(attempts[j], docs, names)]:
        if rest := unpaired():
            pair(max(rest, key=lambda i: (_shared(calls[i], attempts[j].call), -i)), "invalid_tool", j)
    if evidence.garbled and (rest := unpaired()):
        for i in [i for i in rest if any(calls[i].name in g.text for g in evidence.garbled)] or rest:
            how[i] = "text"
    others = [j for j in sorted(free) if attempts[j].call.name not in names]
    for i, j in zip(unpaired(), others, strict=False):
        pair(i, "other_tool", j)
    return replace(evidence, goals=_judged(evidence, how, stand_in))


def is_invalid(attempt: Attempt, docs: Mapping[str, ToolDoc], gold: set[str]) -> bool:
    """Whether the tool is not there: unknown, or not yet available (the gold program's own tools always are)."""
    return attempt.error == "unknown_tool" or (attempt.call.name not in docs and attempt.call.name not in gold)


def _shared(a: Call, b: Call) -> int:
    return sum(1 for name, value in a.arguments.items() if name in b.arguments and b.arguments[name] == value)


def _judged(evidence: TurnEvidence, how: Sequence[str], stand_in: Sequence[int]) -> tuple[Goal, ...]:
    """A goal is met when it was done as asked; or its effect is there; or its information is, no later gold call broke
    for want of it, and the call in its place did not fail (an earlier turn may have shown the same text)."""
    judged: list[Goal] = []
    broke = False
    for i in range(len(how) - 1, -1, -1):
        call, raw, wrote = evidence.goals[i].call, evidence.goals[i].raw, evidence.goals[i].wrote
        exact = how[i] == "exact"
        done = exact and _ran_as_gold(evidence.attempts[stand_in[i]], raw)
        tried = how[i] in ("same_tool", "invalid_tool")
        failed = how[i] == "text" or (tried and bool(evidence.attempts[stand_in[i]].error))
        reached = evidence.state_ok if wrote else evidence.response_ok and not broke and not failed
        broke |= exact and not done
        judged.append(Goal(call, raw, wrote, how[i], stand_in[i], done or reached))
    return tuple(reversed(judged))


def done_as_asked(goal: Goal, attempts: Sequence[Attempt]) -> bool:
    """Whether the gold call itself ran, and as well as it does in the gold program."""
    return goal.how == "exact" and _ran_as_gold(attempts[goal.attempt], goal.raw)


def _ran_as_gold(attempt: Attempt, raw: str) -> bool:
    return not attempt.error or attempt.raw == raw
