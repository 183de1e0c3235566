"""From the failure profile to candidate cues: by label, tool and parameter, never by task."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from seal.core.labels import FAILURES, Label
from seal.core.types import CUE_KINDS, Fact, Json
from seal.evolve.evidence import Evidence
from seal.interface import wording
from seal.interface.feedback import LOOP
from seal.interface.wording import Cue

EXAMPLES = 3  # rollout ids kept with a candidate

# Which notes answer a failure of a tool (or of one of its parameters).
NOTE_KINDS: Mapping[Label, frozenset[str]] = {
    Label.INVALID_TOOL_CALL: frozenset({"example"}),
    Label.ARGUMENT_MISMATCH: frozenset("enum format required type returns range unit default example".split()),
    Label.CONSTRAINT_VIOLATION: frozenset({"needs", "role", "order"}),
    Label.MISSING_TOOL_CALL: frozenset({"returns", "purpose", "needs", "role", "order", "sibling"}),
    Label.STATE_MISMATCH: frozenset({"enum", "format", "needs", "order", "returns", "range", "unit", "sibling"}),
    Label.RESPONSE_MISMATCH: frozenset({"returns", "purpose", "sibling"}),
    Label.RECOVERY_FAILURE: frozenset({"returns"}),
}
# Error kinds whose templates answer a failure whatever the tool.
TEMPLATE_KINDS: Mapping[Label, tuple[str, ...]] = {
    Label.INVALID_TOOL_CALL: ("unknown_tool",),
    Label.BUDGET_EXHAUSTED: (LOOP,),
    Label.RECOVERY_FAILURE: tuple(kind for kind in wording.RECOVERY_TEMPLATES if kind != LOOP),
}
# How likely a cue of this kind is to mend the failure that proposed it: the tie between cues of one target.
WEIGHTS: Mapping[str, float] = {
    **dict.fromkeys(("enum", "needs", "role", "order"), 1.0),
    "format": 0.95,
    "returns": 0.9,
    "call_format": 0.8,
    **dict.fromkeys(("recover", "recover_order"), 0.7),
    **dict.fromkeys(("range", "unit"), 0.6),
    "required": 0.5,
    **dict.fromkeys(("type", "purpose", "sibling"), 0.4),
    **dict.fromkeys(("default", "example", "recover_any", "guidance"), 0.3),
}


@dataclass(frozen=True, slots=True)
class Need:
    """One failing (label, tool, parameter), or (label, category) for hints, summed over profile rows.

    `rate` is failures per exposed turn in [0, 1]; `persists`: it failed in the parent's profile as well.
    """

    label: Label
    tool: str = ""
    parameter: str = ""
    category: str = ""
    support: int = 0
    rate: float = 0.0
    persists: bool = False
    rollouts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cue with the need that speaks most for it; `support` sums over all needs that do."""

    cue: Cue
    need: Need
    support: int
    rate: float

    @property
    def key(self) -> tuple[str, str, str]:
        """Cues that would say the same thing at the same place are one."""
        return self.cue.where, self.cue.target, self.cue.text


def needs_of(profile: Iterable[Mapping[str, Json]], by: Sequence[str]) -> list[Need]:
    """Failures of the profile grouped by `label` and the columns `by`, in a fixed order.

    Profile rows: category, tool, label, n, rate (n per turn of the category); optional: parameter, n_parent (failures
    in the parent's profile), rollouts (ids of a few of them).
    """
    groups: dict[tuple[str, ...], list[Mapping[str, Json]]] = defaultdict(list)
    for row in profile:
        if row["label"] in FAILURES and row["n"] > 0:
            groups[row["label"], *(row.get(column) or "" for column in by)].append(row)
    needs = []
    for key, rows in sorted(groups.items()):
        failed = sum(row["n"] for row in rows)
        turns: dict[str, float] = {}  # of a category, counted once
        for row in rows:
            if row["rate"]:
                turns[row["category"]] = max(turns.get(row["category"], 0.0), row["n"] / row["rate"])
        exposed = sum(turns[category] for category in sorted(turns))
        rate, place = min(1.0, failed / exposed) if exposed else 0.0, dict(zip(by, key[1:], strict=True))
        persists = any(row.get("n_parent") for row in rows)
        ids = tuple(sorted({i for row in rows for i in row.get("rollouts") or ()})[:EXAMPLES])
        needs.append(Need(Label(key[0]), **place, support=int(failed), rate=rate, persists=persists, rollouts=ids))
    return needs


def propose(evidence: Evidence, call_format: str = "words", kinds: Collection[str] = CUE_KINDS) -> list[Candidate]:
    """All cues of these kinds that the profile speaks for, one per place and text, in a fixed order.

    Recovery templates are proposed for the error kinds that were seen only. A fact that the docs tell is proposed only
    where its failure persists.
    """
    votes: dict[tuple[str, str, str], list[tuple[Cue, Need]]] = defaultdict(list)
    for need in needs_of(evidence.profile, ("tool", "parameter")):
        for cue in _cues_for(need, evidence, call_format):
            if cue.kind in kinds:
                votes[cue.where, cue.target, cue.text].append((cue, need))
    if wording.GUIDANCE_KIND in kinds:
        for need in needs_of(evidence.profile, ("category",)):
            if cue := wording.guidance(need.label, need.category):
                votes[cue.where, cue.target, cue.text].append((cue, need))
    return [_candidate(votes[key]) for key in sorted(votes)]


def _candidate(votes: Sequence[tuple[Cue, Need]]) -> Candidate:
    cue, need = max(votes, key=lambda vote: (vote[1].support, vote[1].rate, vote[1].label))
    return Candidate(cue, need, sum(need.support for _, need in votes), max(need.rate for _, need in votes))


def _cues_for(need: Need, evidence: Evidence, call_format: str) -> Iterator[Cue]:
    kinds, facts, orders = NOTE_KINDS.get(need.label, frozenset()), evidence.facts, evidence.orders
    params = {fact.param for fact in facts if fact.tool == need.tool and fact.param}
    for fact in facts:
        if fact.documented and not need.persists:
            continue
        if fact.kind in kinds and _concerns(fact, need, params) and (cue := wording.note(fact)):
            yield cue
        if need.label is Label.RECOVERY_FAILURE and _on_target(fact, need) and (cue := wording.recovery(fact)):
            yield cue
    if "order" in kinds:  # a missing call may be the prerequisite; every other failure is the refused tool's own
        missing = need.label is Label.MISSING_TOOL_CALL
        yield from (wording.order(o) for o in orders if need.tool == o.tool or missing and need.tool == o.prerequisite)
    if need.label in (Label.CONSTRAINT_VIOLATION, Label.RECOVERY_FAILURE):
        yield from (wording.recovery_order(o) for o in orders if o.tool == need.tool)
    for error_kind in TEMPLATE_KINDS.get(need.label, ()):
        seen = evidence.errors is None or evidence.errors.get(error_kind) or error_kind == LOOP
        if seen and (cue := wording.recover_any(error_kind)):
            yield cue
    if need.label is Label.INVALID_TOOL_CALL and (cue := wording.call_format(call_format)):
        yield cue


def _on_target(fact: Fact, need: Need) -> bool:
    return fact.tool == need.tool and (not need.parameter or fact.param in ("", need.parameter))


def _concerns(fact: Fact, need: Need, params: set[str]) -> bool:
    """Whether a fact bears on a need: it is about the target, or about the tool that the target depends on."""
    if fact.kind == "returns":
        wanted = {need.parameter} if need.parameter else params
        told_by_other = fact.tool != need.tool and bool(wanted & set(fact.value))
        about_itself = fact.tool == need.tool and need.label in (Label.MISSING_TOOL_CALL, Label.RESPONSE_MISMATCH)
        return told_by_other or about_itself
    if fact.kind == "sibling" or (fact.kind in ("needs", "role") and need.label is Label.MISSING_TOOL_CALL):
        return fact.tool == need.tool or need.tool in fact.value
    return _on_target(fact, need)
