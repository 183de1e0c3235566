"""Weighted supervised learning on the policy's own successes, and on the turns it recovered in. Plain torch."""

from collections.abc import Sequence
from functools import partial

import torch

from seal.core.judged import Judged
from seal.core.labels import Label
from seal.train.advantage import group_advantages
from seal.train.batch import Batch, Condition, make_batch, tokens_by_turn, training_view
from seal.train.objective import Example, Objective, descend
from seal.train.reweight import Factors, TurnWeight, WeightParams, normalise, strength, weigh
from seal.train.settings import OptimSettings
from seal.train.updates import token_logprobs


def demonstrations(
    judged: Sequence[Judged], weighting: WeightParams, factors: Factors, condition: Condition = "within_group"
) -> Batch:
    """Rows to imitate, with "advantage" 1: passing rollouts, and of failed ones the valid turns with an error in them.

    Turn weights and normalisation are those of the RL batch; what is not imitated has weight 0.
    """
    usable = [j for j in judged if j.usable]
    spared = [j.failed_calls if weighting.granularity == "turn" else frozenset() for j in usable]
    views = [training_view(j.rollout, condition, steps) for j, steps in zip(usable, spared, strict=True)]
    weights: list[TurnWeight] = []
    for j, view in zip(usable, views, strict=True):
        tokens = tokens_by_turn(j.rollout, view)
        weights += weigh(j, 1.0, tokens, weighting, factors) if j.success else _recovered(j, tokens, weighting, factors)
    weights = normalise(weights) if weighting.normalise and weighting.granularity != "none" else weights
    groups = group_advantages([float(j.success) for j in usable], [j.rollout.task_id for j in usable])
    return make_batch(judged, views, weights, groups, sum(row.tokens for row in weights if row.weight), condition)


def _recovered(judged: Judged, tokens: dict[int, int], weighting: WeightParams, factors: Factors) -> list[TurnWeight]:
    rho = max(strength(label, weighting, factors) for label in (Label.RECOVERY_FAILURE, Label.PASS))
    rho = 1.0 if weighting.granularity == "none" else rho
    rows = []
    for turn, count in sorted(tokens.items()):
        imitated = judged.valid(turn) and judged.had_error(turn)
        row = (1.0, rho, rho, "recovered") if imitated else (0.0, 0.0, 0.0, "failed")
        rows.append(TurnWeight(judged.rollout.rollout_id, turn, *row, count))
    return rows


def imitation(model: torch.nn.Module, settings: OptimSettings) -> Objective:
    """Weighted likelihood. Reads neither beta nor epsilon."""

    def loss(examples: Sequence[Example]) -> torch.Tensor:
        rows = [example.rows[0] for example in examples]
        logprobs, mask, weight = token_logprobs(model, rows, settings.temperature)
        return -(logprobs * mask * weight).sum()

    return Objective(lambda batch: [Example((row,)) for row in batch.rows], loss)


train = partial(descend, imitation)
