"""Weighted supervised learning on the policy's own successes, and on the turns it recovered in. Plain torch."""

from collections.abc import Sequence
from functools import partial

import torch

from seal.core.judged import Judged
from seal.core.labels import Label
from seal.settings.train import TrainParams
from seal.train.advantage import group_advantages
from seal.train.batch import Batch, make_batch, tokens_by_turn, training_views
from seal.train.descent import Example, Objective, descend, token_logprobs
from seal.train.optimise import UpdatePlan
from seal.train.reweight import Factors, TurnWeight, normalised, strength, turn_weights


def demonstrations(judged: Sequence[Judged], params: TrainParams, factors: Factors) -> Batch:
    """Rows to imitate, with "advantage" 1: passing rollouts, and of failed ones the valid turns with an error in them.

    Turn weights and normalisation are those of the RL batch; what is not imitated has weight 0.
    """
    usable = [j for j in judged if j.usable]
    views = training_views(usable, params)
    weights: list[TurnWeight] = []
    for j, view in zip(usable, views, strict=True):
        tokens = tokens_by_turn(j.rollout, view)
        if j.success:
            weights += turn_weights(j, 1.0, tokens, params, factors)
        else:
            weights += _recovered(j, tokens, params, factors)
    weights = normalised(weights, params)
    groups = group_advantages([float(j.success) for j in usable], [j.rollout.task_id for j in usable])
    divisor = sum(row.tokens for row in weights if row.weight)
    return make_batch(judged, views, weights, groups, divisor, params.condition)


def _recovered(judged: Judged, tokens: dict[int, int], params: TrainParams, factors: Factors) -> list[TurnWeight]:
    rho = max(strength(label, params, factors) for label in (Label.RECOVERY_FAILURE, Label.PASS))
    rho = 1.0 if params.weights == "none" else rho
    rows = []
    for turn, count in sorted(tokens.items()):
        imitated = judged.valid(turn) and judged.had_error(turn)
        row = (1.0, rho, rho, "recovered") if imitated else (0.0, 0.0, 0.0, "failed")
        rows.append(TurnWeight(judged.rollout.rollout_id, turn, *row, count))
    return rows


def imitation(model: torch.nn.Module, plan: UpdatePlan) -> Objective:
    """Weighted likelihood. Reads neither beta nor epsilon."""

    def loss(examples: Sequence[Example]) -> torch.Tensor:
        rows = [example.rows[0] for example in examples]
        logprobs, mask, weight = token_logprobs(model, rows, plan.temperature)
        return -(logprobs * mask * weight).sum()

    return Objective(lambda batch: [Example((row,)) for row in batch.rows], loss)


train = partial(descend, imitation)
