"""Which cues are kept, retired and added, by evidence and under a token budget. Pure and deterministic."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from seal.core.errors import ParamError
from seal.core.types import CUE_KINDS, Json
from seal.evolve.baselines import baseline
from seal.evolve.candidates import WEIGHTS, Candidate, propose
from seal.evolve.changes import ChangeLog, Row, key_of, original, removed_for_good
from seal.evolve.evidence import Evidence
from seal.evolve.guard import guard_for
from seal.evolve.paraphrase import Rewrite, paraphrase
from seal.evolve.uplift import MIN_TASKS
from seal.interface import wording
from seal.interface.doc_facts import facts_of_docs
from seal.interface.state import InterfaceState, Item
from seal.settings.evolve import EvolveParams

GROUPS: Mapping[str, Sequence[str]] = {"plain": wording.PLAIN_KINDS, "all": CUE_KINDS}
_FROM_PROSE = frozenset({"range", "unit", "default", "sibling", "example"})  # kinds of facts read from the docs' prose


@dataclass(frozen=True, slots=True)
class Reader:
    """The policy that reads the cues: the format of its calls (for cues that show one, and for marks it can read), how
    many tokens a text is for it, and another wording of a new cue, taken where `paraphrase` finds nothing against it.
    """

    call_format: str = "words"
    count: Callable[[str], int] = wording.count_words
    rewrite: Rewrite | None = None


def evolve(
    parent: InterfaceState,
    evidence: Evidence,
    params: EvolveParams,
    round_id: str,
    reader: Reader = Reader(),
    seed: int = 0,
) -> tuple[InterfaceState, list[Row]]:
    """The next interface and one row per decision. `seed`: of `interface: random`.

    Raises ParamError on an unknown `interface` or `kinds`.
    """
    kinds, log = kinds_of(params.kinds), ChangeLog(round_id, reader.count)
    if params.interface != "evolved":
        return baseline(parent, evidence.facts, params, reader.call_format, seed, log), log.rows
    if kinds & _FROM_PROSE:
        toolsets = [task.toolset for task in evidence.tasks]
        documented = facts_of_docs(evidence.docs, reader.call_format, toolsets)
        evidence = replace(evidence, facts=(*evidence.facts, *documented))
    candidates = propose(evidence, reader.call_format, kinds)
    reviewed = _review(parent, candidates, params, evidence.uplifts, log)
    added = _add(reviewed, candidates, params, evidence, reader.rewrite, log)
    back = {original(item).id for item in added}
    return InterfaceState((*(i for i in reviewed.items if original(i).id not in back), *added)), log.rows


def kinds_of(names: Sequence[str]) -> frozenset[str]:
    """Operators by name or by group. Raises ParamError for a name that is neither."""
    kinds = frozenset(kind for name in names for kind in GROUPS.get(name, (name,)))
    if unknown := sorted(kinds - set(CUE_KINDS)):
        known = ", ".join((*GROUPS, *CUE_KINDS))
        raise ParamError("evolve.kinds", ", ".join(unknown), f"use some of {known}")
    return kinds


def _review(
    parent: InterfaceState, candidates: list[Candidate], params: EvolveParams, uplifts: Sequence[Row], log: ChangeLog
) -> InterfaceState:
    """Keep or retire every active item: by its uplift, by how long its failure has been gone, by the budget."""
    failing = {c.key: c for c in candidates if c.rate > params.retire_rate}
    at_most = {row["item"]: row["high"] for row in uplifts}
    items, spent = [], 0
    for item in parent.items:
        if item.status != "active":
            items.append(item)
            continue
        found, tokens = failing.get(key_of(original(item))), log.count(item.text)
        quiet = 0 if found else int(item.evidence.get("quiet", 0)) + 1
        out = reason = ""
        if at_most.get(item.id, 1.0) < params.retire_uplift:
            out, reason = "uplift", f"uplift below {params.retire_uplift:g}: at most {at_most[item.id]:.3f}"
        elif quiet >= params.retire_patience:
            out, reason = "gone", f"its failure is gone for {quiet} rounds"
        elif spent + tokens > params.token_budget:
            out, reason = "budget", "over the token budget"
        if out:
            item = replace(item, status="retired", evidence={**item.evidence, "quiet": quiet, "out": out})
        else:
            spent += tokens
            item = replace(item, evidence={**item.evidence, "quiet": quiet})
            reason = "still failing" if found else f"quiet for {quiet} round{'s' * (quiet > 1)}"
        items.append(item)
        log.add("retire" if out else "keep", item, reason, *((found.support, found.rate) if found else (0, 0.0)))
    return InterfaceState(tuple(items))


def _add(
    state: InterfaceState,
    candidates: Sequence[Candidate],
    params: EvolveParams,
    evidence: Evidence,
    rewrite: Rewrite | None,
    log: ChangeLog,
) -> list[Item]:
    """The best candidates, one after the other; one that does not fit the budget is passed over."""
    before = [original(item) for item in state.items]
    there = {key_of(item) for item in before if item.status == "active"} | removed_for_good(state)
    born = {item.id: item.born_in for item in before}
    budget = params.token_budget - sum(log.count(item.text) for item in state.active)
    guard = guard_for(evidence.facts, evidence.docs, evidence.tasks)
    added: list[Item] = []
    for score, candidate in _ranked(candidates, _worth_of_kinds(state, evidence.uplifts), log):
        need, cue = candidate.need, candidate.cue
        item = cue.item(need.label.value, log.round_id, candidate.support, rollouts=list(need.rollouts), quiet=0)
        fits = log.count(item.text) <= budget and len(added) < params.max_new
        enough = candidate.support >= params.min_support and candidate.rate >= params.min_rate
        if candidate.key in there or _repeats(item, (*state.active, *added)) or not (fits and enough):
            continue
        if found := guard.reasons(item):
            log.add("refuse", item, "; ".join(found), rate=candidate.rate)
            continue
        reason = "failing again" if item.id in born else f"score {score:.3f}"
        item = replace(item, born_in=born.get(item.id, log.round_id))
        if rewrite and (text := paraphrase(item, rewrite, guard)) and log.count(text) <= budget:
            item = replace(item, text=text, evidence={**item.evidence, "original": item.text})
        added.append(item)
        budget -= log.count(item.text)
        log.add("add", item, f"{reason}; {cue.counts}" if cue.counts else reason, rate=candidate.rate)
    return added


def _ranked(
    candidates: Sequence[Candidate], worth: Mapping[str, float], log: ChangeLog
) -> list[tuple[float, Candidate]]:
    """(score, candidate), best first: by failing turns, by how often they fail, by what a cue of its kind mends."""

    def score(c: Candidate) -> float:
        return c.support * c.rate * WEIGHTS[c.cue.kind] * worth.get(c.cue.kind, 1.0)

    def rank(pair: tuple[float, Candidate]) -> tuple:
        value, c = pair
        return -value, log.count(c.cue.text), CUE_KINDS.index(c.cue.kind), c.key

    return sorted(((score(c), c) for c in candidates), key=rank)


def _repeats(item: Item, shown: Sequence[Item]) -> bool:
    """Whether items of the same place and target already say all of it ("after a" beside "after a after b")."""
    same = [original(i).text for i in shown if (i.where, i.target) == (item.where, item.target)]
    return any(f" {item.text} " in f" {text} " for text in same)


def _worth_of_kinds(state: InterfaceState, uplifts: Sequence[Mapping[str, Json]]) -> dict[str, float]:
    """Kind -> 1 + mean uplift of its measured items, by their tasks, within [0.5, 2]: what helped before is tried
    first."""
    kind_of = {item.id: item.kind for item in state.items}
    total: dict[str, float] = defaultdict(float)
    tasks: dict[str, int] = defaultdict(int)
    for row in uplifts:
        if row["item"] in kind_of and row["tasks"] >= MIN_TASKS:
            kind = kind_of[row["item"]]
            total[kind] += row["uplift"] * row["tasks"]
            tasks[kind] += row["tasks"]
    return {kind: min(2.0, max(0.5, 1 + total[kind] / n)) for kind, n in sorted(tasks.items())}
