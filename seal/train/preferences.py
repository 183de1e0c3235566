"""Preference pairs from rollouts of one task: the same words up to the diagnosed turn, then right against wrong. Pure.

A rollout is rejected for its first failing turn, when the diagnosis calls that turn a root failure: it stood in gold's
state until there. Chosen is how another rollout of the group, in a right state too, served that turn. Where both said
the same until then, the pair is as played (`grafted` False); otherwise the chosen turn is set behind the rejected
rollout's words, which is sound because both worlds are in the same state. What both say alike within the turn belongs
to the prompt, so a pair begins with the first action that differs.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from seal.core.judged import Judged
from seal.settings.train import TrainParams
from seal.train.advantage import group_advantages
from seal.train.batch import Batch, Condition, TrainRow, training_view
from seal.train.reweight import NOT_THE_POLICY, Factors, TurnWeight, normalised, root_failures, strength


@dataclass(frozen=True, slots=True)
class Turn:
    """One user turn of a training row, from its first sampled token to its last; `before`: all ids before that."""

    before: tuple[int, ...]
    ids: tuple[int, ...]
    mask: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """What one rollout says behind the pair's prompt; `mask` is 1 on its own words, tool results between carry none."""

    rollout_id: str
    ids: tuple[int, ...]
    mask: tuple[int, ...]

    def until_action(self) -> "Side":
        """Cut behind its first action: no tool result is left in it."""
        end = (*self.mask, 0).index(0)
        return replace(self, ids=self.ids[:end], mask=self.mask[:end])


@dataclass(frozen=True, slots=True)
class Pair:
    """`label`: the root failure of `turn`; `confidence` of it; `grafted`: the prompt is the rejected rollout's own."""

    task_id: str
    turn: int
    label: str
    confidence: float
    grafted: bool
    prompt_ids: tuple[int, ...]
    chosen: Side
    rejected: Side

    def until_action(self) -> "Pair":
        """Both sides cut behind their first action."""
        return replace(self, chosen=self.chosen.until_action(), rejected=self.rejected.until_action())


def preference_pairs(judged: Sequence[Judged], condition: Condition = "within_group") -> list[Pair]:
    """At most one pair for each failed rollout, in the order given. Rollouts that something else failed are left out.

    The chosen turn is taken from a rollout with the same words before it if there is one, else from the next in the
    group's order after the rejected one, so that one success is not chosen for all. A turn with tokens that interface
    text stands before (see training_view) is in no pair.
    """
    groups: dict[str, list[Judged]] = defaultdict(list)
    for j in judged:
        if j.usable and j.rollout.tokens.completion_ids:
            groups[j.rollout.task_id].append(j)
    pairs: list[Pair] = []
    for group in groups.values():
        views = [training_view(j.rollout, condition) for j in group]
        pairs += filter(None, (_pair(group, views, i) for i in range(len(group))))
    order = {j.rollout.rollout_id: n for n, j in enumerate(judged)}
    return sorted(pairs, key=lambda pair: order[pair.rejected.rollout_id])


def _pair(group: Sequence[Judged], views: Sequence[TrainRow], i: int) -> Pair | None:
    failed = group[i]
    k = len(failed.passed) - 1
    roots = root_failures(failed)
    if k < 0 or failed.passed[k] or k not in roots:
        return None
    wrong = turn_of(failed, views[i], k)
    candidates = []
    for n, other in enumerate((*group[i + 1 :], *group[:i])):
        view = views[(i + 1 + n) % len(group)]
        if k < len(other.passed) and other.passed[k] and (right := turn_of(other, view, k)):
            candidates.append((right.before != wrong.before if wrong else True, n, other, right))
    if not wrong or not candidates:
        return None
    grafted, _, other, right = min(candidates, key=lambda c: c[:2])
    start = _first_difference(right, wrong)
    if start is None:
        return None
    label, confidence = roots[k]
    chosen = Side(other.rollout.rollout_id, right.ids[start:], right.mask[start:])
    rejected = Side(failed.rollout.rollout_id, wrong.ids[start:], wrong.mask[start:])
    prompt = wrong.before + wrong.ids[:start]
    return Pair(failed.rollout.task_id, k, label, confidence, grafted, prompt, chosen, rejected)


def turn_of(judged: Judged, view: TrainRow, turn: int) -> Turn | None:
    """A turn's part of a training row; None where the policy said nothing in it, or not without interface text."""
    tokens = judged.rollout.tokens
    shown = view.prompt_ids + view.completion_ids == tokens.prompt_ids + tokens.completion_ids
    sampled = tokens.loss_mask if shown else tokens.bare_loss_mask
    places = [i for i, (said, t) in enumerate(zip(sampled, view.turn_of_token, strict=True)) if said and t == turn]
    if not places or not all(view.loss_mask[i] for i in places):
        return None
    start, stop = places[0], places[-1] + 1
    before = view.prompt_ids + view.completion_ids[:start]
    return Turn(before, view.completion_ids[start:stop], tuple(sampled[start:stop]))


def _first_difference(right: Turn, wrong: Turn) -> int | None:
    """Where the first action begins that differs; None where the shorter turn is all of what both say."""
    same = 0
    for a, b in zip(right.ids, wrong.ids, strict=False):
        if a != b:
            break
        same += 1
    if same in (len(right.ids), len(wrong.ids)):
        return None
    while same and (right.mask[same - 1] or not right.mask[same]):
        same -= 1  # back to the beginning of this action
    return same


def pair_batch(judged: Sequence[Judged], params: TrainParams, factors: Factors) -> Batch:
    """Rows chosen, rejected, chosen, rejected, ...; a pair's weight is its rows' advantage (plus and minus).

    The weight is that of the root failure (1 with weights "none"), scaled by the label's confidence, mean 1 over pairs.
    `divisor` counts pairs: what the loss is divided by.
    """
    pairs = preference_pairs(judged, params.condition)
    weights = [
        TurnWeight(p.rejected.rollout_id, p.turn, -1.0, rho, 1 + p.confidence * (rho - 1), "rejected", 1)
        for p in pairs
        for rho in [1.0 if params.weights == "none" else strength(p.label, params, factors)]
    ]
    weights = normalised(weights, params)
    rows = tuple(row for pair, weight in zip(pairs, weights, strict=True) for row in _rows(pair, weight.weight))
    usable = [j for j in judged if j.usable]
    groups = group_advantages([float(j.success) for j in usable], [j.rollout.task_id for j in usable])
    chosen: dict[tuple[str, int], TurnWeight] = {}
    for pair, row in zip(pairs, weights, strict=True):
        key = (pair.chosen.rollout_id, pair.turn)
        before = chosen[key].weight if key in chosen else 0.0
        weight = row.weight + before  # of all pairs that it is chosen in
        chosen[key] = TurnWeight(*key, 1.0, row.utility, weight, "chosen", len(pair.chosen.ids))
    paired = {*chosen, *((row.rollout_id, row.turn) for row in weights)}
    others = [
        TurnWeight(j.rollout.rollout_id, turn, 0.0, 0.0, 0.0, "unpaired" if j.usable else NOT_THE_POLICY)
        for j in judged
        for turn in sorted({step.turn for step in j.rollout.steps})
        if (j.rollout.rollout_id, turn) not in paired
    ]
    return Batch(
        rows=rows,
        weights=tuple(sorted([*weights, *chosen.values(), *others], key=lambda row: (row.rollout_id, row.turn))),
        groups=groups,
        divisor=len(pairs),
        share_masked=0.0,
        dropped=0,
        excluded=len(judged) - len(usable),
    )


def _rows(pair: Pair, weight: float) -> Iterator[TrainRow]:
    for side, sign in ((pair.chosen, 1), (pair.rejected, -1)):
        advantages = tuple(sign * weight * sampled for sampled in side.mask)
        unsampled, turns = (0.0,) * len(side.ids), (pair.turn,) * len(side.ids)
        yield TrainRow(side.rollout_id, pair.prompt_ids, side.ids, side.mask, unsampled, turns, advantages)
