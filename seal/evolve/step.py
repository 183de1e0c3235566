"""One step of the interface: keep, retire and add cues by evidence, under a token budget. Pure and deterministic."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from seal.core.errors import ParamError
from seal.core.types import CUE_KINDS, Fact, Json, Order, Task, ToolDoc
from seal.evolve import fixed
from seal.evolve.guard import Guard, guard_for
from seal.evolve.propose import WEIGHTS, Candidate, propose
from seal.evolve.rewording import Rewrite, reword
from seal.evolve.uplift import MIN_TASKS
from seal.interface import wording
from seal.interface.doc_facts import told
from seal.interface.state import InterfaceState, Item
from seal.settings.evolve import EvolveParams

GROUPS: Mapping[str, Sequence[str]] = {"plain": wording.PLAIN_KINDS, "all": CUE_KINDS}
_TOLD_KINDS = frozenset({"range", "unit", "default", "sibling", "example"})  # of facts read from the docs' prose
Counter = Callable[[str], int]
Row = dict[str, Json]
_NEVER_AGAIN = ("uplift", "gate")  # why an item was taken out, such that it does not come back


def evolve(
    parent: InterfaceState,
    profile: Sequence[Mapping[str, Json]],
    facts: Sequence[Fact],
    orders: Sequence[Order],
    params: EvolveParams,
    round_id: str,
    *,
    call_format: str = "words",
    seed: int = 0,
    docs: Sequence[ToolDoc] = (),
    tasks: Sequence[Task] = (),
    uplifts: Sequence[Mapping[str, Json]] = (),
    errors: Mapping[str, int] | None = None,
    count: Counter = wording.count_words,
    rewrite: Rewrite | None = None,
) -> tuple[InterfaceState, list[Row]]:
    """The next interface and one row per decision.

    Args:
        profile: rows as in `propose.needs_of`, of bare rollouts. facts, orders: what cues may quote.
        call_format: of the policy, for cues that show a call, and marks it can read. seed: of `interface: random`.
        docs, tasks: bare docs that cues may quote too, and tasks whose gold, state and words they must not (the
            guard refuses what has no source either way; tasks let it say what leaked).
        uplifts: rows of `uplift.uplifts`. errors: count per error kind seen. count: tokens of a text.
        rewrite: another wording of a new item, taken where `reword` finds nothing against it.
    Raises ParamError on an unknown `interface` or `kinds`.
    """
    kinds = kinds_of(params.kinds)
    if params.interface != "evolved":
        return _fixed(parent, facts, params, call_format, seed, round_id, count)
    if kinds & _TOLD_KINDS:
        facts = (*facts, *told(docs, call_format, [task.toolset for task in tasks]))
    candidates = propose(profile, facts, orders, call_format, errors, kinds)
    kept, rows = _review(parent, candidates, params, round_id, {row["item"]: row for row in uplifts}, count)
    guard = guard_for(facts, docs, tasks)
    added, more = _choose(kept, candidates, params, round_id, guard, _priors(kept, uplifts), count, rewrite)
    back = {_original(item).id for item in added}
    items = (*(item for item in kept.items if _original(item).id not in back), *added)
    return InterfaceState(items), rows + more


def kinds_of(names: Sequence[str]) -> frozenset[str]:
    """Operators by name or by group. Raises ParamError for a name that is neither."""
    kinds = frozenset(kind for name in names for kind in GROUPS.get(name, (name,)))
    if unknown := sorted(kinds - set(CUE_KINDS)):
        known = ", ".join((*GROUPS, *CUE_KINDS))
        raise ParamError("evolve.kinds", ", ".join(unknown), f"use some of {known}")
    return kinds


def roll_back(
    state: InterfaceState, item_ids: Sequence[str], reason: str, round_id: str, count: Counter = wording.count_words
) -> tuple[InterfaceState, list[Row]]:
    """The state without these active items (the gate's verdict); they are not proposed again."""
    gone = set(item_ids)
    items, rows = [], []
    for item in state.items:
        if item.id in gone and item.status == "active":
            item = replace(item, status="rolled_back", evidence={**item.evidence, "out": "gate"})
            rows.append(change("rollback", item, round_id, reason, count=count))
        items.append(item)
    return replace(state, items=tuple(items)), rows


def change(
    action: str,
    item: Item,
    round_id: str,
    reason: str,
    support: int | None = None,
    rate: float = 0.0,
    count: Counter = wording.count_words,
) -> Row:
    """One row of the change log. Actions: add, keep, retire, rollback, refuse (by the guard)."""
    return {
        "round": round_id,
        "action": action,
        "item": item.id,
        "kind": item.kind,
        "target": item.target,
        "place": item.where,
        "text": item.text,
        "tokens": count(item.text),
        "label": item.label,
        "support": item.support if support is None else support,
        "rate": round(float(rate), 6),
        "reason": reason,
        "evidence": list(item.evidence.get("rollouts", ())),
    }


def _review(
    parent: InterfaceState,
    candidates: Sequence[Candidate],
    params: EvolveParams,
    round_id: str,
    uplifts: Mapping[str, Mapping[str, Json]],
    count: Counter,
) -> tuple[InterfaceState, list[Row]]:
    """Keep or retire every active item: by its uplift, by how long its failure has been gone, by the budget."""
    alive = {c.key: c for c in candidates if c.rate > params.retire_rate}
    items, rows, spent = [], [], 0
    for item in parent.items:
        if item.status != "active":
            items.append(item)
            continue
        found = alive.get(_key(_original(item)))
        quiet = 0 if found else int(item.evidence.get("quiet", 0)) + 1
        out = reason = ""
        if uplifts.get(item.id, {}).get("high", 1.0) < params.retire_uplift:
            out, reason = "uplift", f"uplift below {params.retire_uplift:g}: at most {uplifts[item.id]['high']:.3f}"
        elif quiet >= params.retire_patience:
            out, reason = "gone", f"its failure is gone for {quiet} rounds"
        elif spent + count(item.text) > params.token_budget:
            out, reason = "budget", "over the token budget"
        if out:
            item = replace(item, status="retired", evidence={**item.evidence, "quiet": quiet, "out": out})
        else:
            spent += count(item.text)
            item = replace(item, evidence={**item.evidence, "quiet": quiet})
            reason = "still failing" if found else f"quiet for {quiet} round{'s' * (quiet > 1)}"
        items.append(item)
        support, rate = (found.support, found.rate) if found else (0, 0.0)
        rows.append(change("retire" if out else "keep", item, round_id, reason, support, rate, count))
    return InterfaceState(tuple(items)), rows


def _choose(
    state: InterfaceState,
    candidates: Sequence[Candidate],
    params: EvolveParams,
    round_id: str,
    guard: Guard,
    priors: Mapping[str, float],
    count: Counter,
    rewrite: Rewrite | None,
) -> tuple[list[Item], list[Row]]:
    """Greedy by score per candidate; one that does not fit the budget is passed over."""
    before = [_original(item) for item in state.items]
    there = {_key(item) for item in before if item.status == "active"} | _barred(state)
    born = {item.id: item.born_in for item in before}
    budget = params.token_budget - sum(count(item.text) for item in state.active)

    def score(candidate: Candidate) -> float:
        kind = candidate.cue.kind
        return candidate.support * candidate.rate * WEIGHTS[kind] * priors.get(kind, 1.0)

    def rank(candidate: Candidate) -> tuple:
        return -score(candidate), count(candidate.cue.text), CUE_KINDS.index(candidate.cue.kind), candidate.key

    added: list[Item] = []
    rows: list[Row] = []
    for candidate in sorted(candidates, key=rank):
        need = candidate.need
        item = candidate.cue.item(need.label.value, round_id, candidate.support, rollouts=list(need.rollouts), quiet=0)
        tokens = count(item.text)
        fits = tokens <= budget and len(added) < params.max_new
        enough = candidate.support >= params.min_support and candidate.rate >= params.min_rate
        if candidate.key in there or _is_said(item, state, added) or not (fits and enough):
            continue
        if found := guard.reasons(item):
            rows.append(change("refuse", item, round_id, "; ".join(found), rate=candidate.rate, count=count))
            continue
        reason = "failing again" if item.id in born else f"score {score(candidate):.3f}"
        reason += f"; {candidate.cue.basis}" if candidate.cue.basis else ""
        item = replace(item, born_in=born.get(item.id, round_id))
        if rewrite and (text := reword(item, rewrite, guard)) and count(text) <= budget:
            item = replace(item, text=text, evidence={**item.evidence, "original": item.text})
        added.append(item)
        budget -= count(item.text)
        rows.append(change("add", item, round_id, reason, rate=candidate.rate, count=count))
    return added, rows


def _original(item: Item) -> Item:
    """The item as its operator wrote it."""
    return replace(item, text=item.evidence.get("original", item.text))


def _key(item: Item) -> tuple[str, str, str]:
    """As Candidate.key: what says the same at the same place is the same, whatever kind it is."""
    return item.where, item.target, item.text


def _barred(state: InterfaceState) -> set[tuple[str, str, str]]:
    """Keys of what was taken out for good."""
    return {_key(_original(item)) for item in state.items if item.evidence.get("out") in _NEVER_AGAIN}


def _is_said(item: Item, state: InterfaceState, added: Sequence[Item]) -> bool:
    """Whether active items of the same place and target already say all of it ("after a" beside "after a after b")."""
    told = (_original(i) for i in (*state.active, *added))
    same = [i.text for i in told if i.where == item.where and i.target == item.target]
    return any(f" {item.text} " in f" {text} " for text in same)


def _priors(state: InterfaceState, uplifts: Sequence[Mapping[str, Json]]) -> dict[str, float]:
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


def _fixed(
    parent: InterfaceState,
    facts: Sequence[Fact],
    params: EvolveParams,
    call_format: str,
    seed: int,
    round_id: str,
    count: Counter,
) -> tuple[InterfaceState, list[Row]]:
    """The interfaces that do not evolve: the same at every round, whatever the profile says, but for what the gate
    took out."""
    name = params.interface
    if name == "kept":
        return parent, [change("keep", i, round_id, f"interface {name}", count=count) for i in parent.active]
    if name == "none":
        state = InterfaceState()
    elif name == "static":
        state = fixed.static(facts)
    elif name == "published":
        state = fixed.published(facts, call_format)
    elif name == "random":
        full = sum(count(item.text) for item in fixed.static(facts).items)
        state = fixed.random_items(facts, min(full, params.token_budget), seed, count)
    else:
        raise ParamError("evolve.interface", name, "use evolved, kept, none, static, published or random")
    before = {item.id: item for item in parent.active}
    barred = _barred(parent)
    allowed = [item for item in state.items if _key(item) not in barred]
    items = tuple(before.get(item.id) or replace(item, born_in=round_id) for item in allowed)
    after = {item.id for item in items}
    rows = [change("keep" if i.id in before else "add", i, round_id, f"interface {name}", count=count) for i in items]
    gone = [item for id_, item in before.items() if id_ not in after]
    rows += [change("retire", i, round_id, f"interface {name}", count=count) for i in gone]
    out = tuple(item for item in parent.items if item.evidence.get("out") in _NEVER_AGAIN)
    return InterfaceState(items + out), rows
