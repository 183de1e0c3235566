"""From judged rollouts to training rows: which ids, which tokens carry loss, and each token's advantage. Pure.

as_collected           the ids the rollout saw
stripped, within_group the bare ids of an evolved rollout (what the interface added to the docs taken out, the sampled
                       tokens unchanged); tokens sampled after interface text that no docs explain carry no loss
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from seal.core.errors import ArtifactError
from seal.core.judged import Judged
from seal.core.types import Rollout
from seal.settings.train import TrainParams
from seal.train.advantage import Advantages, group_advantages, turn_advantages
from seal.train.reweight import (
    AFTER_FAILURE,
    DROPPED,
    NOT_THE_POLICY,
    ZERO_VARIANCE,
    Factors,
    TurnWeight,
    masked,
    normalised,
    turn_weights,
)

Condition = Literal["as_collected", "stripped", "within_group"]


@dataclass(frozen=True, slots=True)
class TrainRow:
    """One sequence to train on; all completion tuples have one length T, which ends with the last trained token.

    `loss_mask` is 1 where a token is trained, `logprobs` are the sampler's (a diagnostic), `advantages` (T) are
    advantage times turn weight, 0 where nothing is trained.
    """

    rollout_id: str
    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]
    loss_mask: tuple[int, ...]
    logprobs: tuple[float, ...]
    turn_of_token: tuple[int, ...]
    advantages: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """One step's training rows and what there is to tell about them.

    rows        those with a trained token; with zero_variance "keep" some have advantage 0
    groups      of the usable rollouts, counted by what the advantages compare
    divisor     what the summed loss is divided by: trained tokens of all unmasked groups and turns, those of dropped
                rollouts included, so that dropping does not scale up what is left; of pairs (dpo) their number
    share_masked of the sampled tokens, those without loss because of the interface text before them
    """

    rows: tuple[TrainRow, ...]
    weights: tuple[TurnWeight, ...]
    groups: Advantages
    divisor: int
    share_masked: float
    dropped: int
    excluded: int

    def with_rows(self, rows: Sequence[TrainRow]) -> "Batch":
        """With more rows, whose tokens count in the divisor as well. Not for pairs."""
        return replace(self, rows=(*self.rows, *rows), divisor=self.divisor + sum(sum(r.loss_mask) for r in rows))


def training_views(judged: Sequence[Judged], params: TrainParams, condition: Condition | None = None) -> list[TrainRow]:
    """The rows before advantages, under `condition` (the params' own). Where turns are weighted, calls that failed in a
    turn that was served carry no loss."""
    by_turn = params.weights == "turn"
    return [training_view(j.rollout, condition or params.condition, j.failed_calls if by_turn else ()) for j in judged]


def training_view(rollout: Rollout, condition: Condition, steps_without_loss: Collection[int] = ()) -> TrainRow:
    """The row of one rollout before advantages, cut to length T' <= T. `steps_without_loss`: places in rollout.steps.

    Raises ArtifactError when the bare form of an evolved rollout does not hold the sampled tokens it should.
    """
    t = rollout.tokens
    untrained = _tokens_of(steps_without_loss, t.loss_mask)
    if condition == "as_collected" or rollout.mode == "off":
        loss_mask = tuple(int(sampled and i not in untrained) for i, sampled in enumerate(t.loss_mask))
        return TrainRow(rollout.rollout_id, t.prompt_ids, t.completion_ids, loss_mask, t.logprobs, t.turn_of_token)
    shown = [i for i, sampled in enumerate(t.loss_mask) if sampled]
    bare = [i for i, sampled in enumerate(t.bare_loss_mask) if sampled]
    if [t.completion_ids[i] for i in shown] != [t.bare_completion_ids[i] for i in bare]:
        raise ArtifactError("bare tokens", rollout.rollout_id, "collect this round again: the stripped form is broken")
    loss_mask, logprobs = [0] * len(t.bare_completion_ids), [0.0] * len(t.bare_completion_ids)
    turns = [-1] * len(t.bare_completion_ids)  # -1: the environment's, whose turn nobody asks for
    for i, j in zip(shown, bare, strict=True):
        loss_mask[j] = 0 if i in untrained else 1 - t.interface_mask[i]
        logprobs[j], turns[j] = t.logprobs[i], t.turn_of_token[i]
    columns = (t.bare_prompt_ids, t.bare_completion_ids, tuple(loss_mask), tuple(logprobs), tuple(turns))
    return TrainRow(rollout.rollout_id, *columns)


def _tokens_of(steps: Collection[int], sampled: Sequence[int]) -> set[int]:
    """Places of the tokens of some steps: what a step says stands between two segments of the environment's."""
    places, step, before = set(), -1, 0
    for i, is_sampled in enumerate(sampled):
        step += is_sampled and not before
        before = is_sampled
        if is_sampled and step in steps:
            places.add(i)
    return places


def assemble(judged: Sequence[Judged], params: TrainParams, factors: Factors) -> Batch:
    """Judged rollouts -> training rows, in the order given. Rollouts that something else failed are left out.

    Of `params`:
    credit: what an advantage compares, whole rollouts by their success, or each user turn by its own (see
    `turn_advantages`; turns without signal are then masked, whatever `zero_variance` says).
    drop_negative: the negative advantages of evolved rollouts (True), of every rollout ("all"), of none (False)
    become 0, and `negative` of each other one is left; the weights are normalised before that.
    rehearse: evolved rollouts with a positive advantage train as they were collected, too, at this share of it.
    """
    usable = [j for j in judged if j.usable]
    tasks = [j.rollout.task_id for j in usable]
    groups = group_advantages([j.outcome(params.credit) for j in usable], tasks, params.zero_variance)
    by_turn = turn_advantages([j.passed for j in usable], tasks) if params.credit == "turn" else [None] * len(usable)
    views = training_views(usable, params)
    weights: list[TurnWeight] = []
    for j, view, advantage, trained, turns in zip(usable, views, groups.values, groups.trained, by_turn, strict=True):
        tokens = tokens_by_turn(j.rollout, view)
        if turns is None:
            raw = turn_weights(j, float(advantage), tokens, params, factors)
            weights += raw if trained else masked(raw, ZERO_VARIANCE)
        else:
            for row in turn_weights(j, turns, tokens, params, factors):
                reason = ZERO_VARIANCE if row.turn < len(j.passed) else AFTER_FAILURE
                weights += [row] if row.turn in turns else masked([row], reason)
    weights = normalised(weights, params)
    divisor = sum(row.tokens for row in weights if row.weight)

    weights = [replace(row, weight=row.weight * params.negative) if row.advantage < 0 else row for row in weights]
    if params.drop_negative:
        droppable = {j.rollout.rollout_id for j in usable if not j.bare or params.drop_negative == "all"}
        drop = {row for row in weights if row.weight > 0 > row.advantage and row.rollout_id in droppable}
        weights = [*masked(drop, DROPPED), *(row for row in weights if row not in drop)]
    batch = make_batch(judged, views, weights, groups, divisor, params.condition)
    if not params.rehearse or params.condition == "as_collected":
        return batch
    shown = training_views([j for j in usable if not j.bare], params, "as_collected")
    return batch.with_rows(_rehearsed(shown, weights, params.rehearse))


def _rehearsed(views: Sequence[TrainRow], weights: Sequence[TurnWeight], share: float) -> list[TrainRow]:
    """Rows of the turns with a positive advantage, of which they get a share."""
    scaled = {(w.rollout_id, w.turn): replace(w, weight=w.weight * share * (w.advantage > 0)) for w in weights}
    return [row for view in views if any((row := with_advantages(view, scaled)).loss_mask)]


def make_batch(
    judged: Sequence[Judged],
    views: Sequence[TrainRow],
    weights: list[TurnWeight],
    groups: Advantages,
    divisor: int,
    condition: Condition,
) -> Batch:
    """The batch of the usable rollouts' views and final weights; the others get rows of weight 0."""
    by_turn = {(row.rollout_id, row.turn): row for row in weights}
    rows = [with_advantages(view, by_turn) for view in views]
    others = [j.rollout for j in judged if not j.usable]
    turns = [(rollout.rollout_id, turn) for rollout in others for turn in sorted({step.turn for step in rollout.steps})]
    weights = [*weights, *(TurnWeight(*key, 0.0, 0.0, 0.0, NOT_THE_POLICY) for key in turns)]
    tokens = [j.rollout.tokens for j in judged if j.usable]
    sampled, hidden = sum(sum(t.loss_mask) for t in tokens), sum(sum(t.interface_mask) for t in tokens)
    return Batch(
        rows=tuple(row for row in rows if any(row.loss_mask)),
        weights=tuple(sorted(weights, key=lambda row: (row.rollout_id, row.turn))),
        groups=groups,
        divisor=divisor,
        share_masked=hidden / sampled if sampled and condition != "as_collected" else 0.0,
        dropped=len({row.rollout_id for row in weights if row.reason == DROPPED}),
        excluded=len(others),
    )


def tokens_by_turn(rollout: Rollout, view: TrainRow) -> dict[int, int]:
    """User turn the policy spoke in -> its tokens that can be trained (0 where the interface masks them all)."""
    counts = {step.turn: 0 for step in rollout.steps}
    for turn, trained in zip(view.turn_of_token, view.loss_mask, strict=True):
        if trained:
            counts[turn] = counts.get(turn, 0) + 1
    return counts


def with_advantages(view: TrainRow, weights: Mapping[tuple[str, int], TurnWeight]) -> TrainRow:
    """The row with per-token advantages: tokens of masked turns carry no loss, and the last token does."""
    loss_mask, advantages = [], []
    for trained, turn in zip(view.loss_mask, view.turn_of_token, strict=True):
        row = weights[view.rollout_id, turn] if trained else None
        loss_mask.append(int(row is not None and row.weight > 0))
        advantages.append(row.advantage * row.weight if row else 0.0)
    end = len(loss_mask) - loss_mask[::-1].index(1) if 1 in loss_mask else 0
    return replace(
        view,
        completion_ids=view.completion_ids[:end],
        loss_mask=tuple(loss_mask[:end]),
        logprobs=view.logprobs[:end],
        turn_of_token=view.turn_of_token[:end],
        advantages=tuple(advantages[:end]),
    )
