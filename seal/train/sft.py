"""Weighted supervised learning on the policy's own successes, and on the turns it recovered in. Plain torch."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from seal.core.labels import Label
from seal.train.advantage import group_advantages
from seal.train.batch import Batch, Condition, TrainRow, make_batch, tokens_by_turn, training_view
from seal.train.judged import Judged
from seal.train.plain import token_logprobs, updates_of
from seal.train.reweight import Factors, TurnWeight, WeightParams, normalise, strength, weigh
from seal.train.settings import CPU_ROWS, OptimSettings, StepMetrics


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


def train(
    model: torch.nn.Module,
    tokenizer: Any,
    batch_of_step: Callable[[int], Batch],
    settings: OptimSettings,
    optimizer: torch.optim.Optimizer,
    after_step: Callable[[int, StepMetrics], None],
    first_step: int = 0,
    restore: Callable[[], None] | None = None,
) -> None:
    """Weighted likelihood: an `Optimise` (seal.train.settings). Reads neither beta nor epsilon."""
    if restore:
        restore()
    for step in range(first_step, settings.steps):
        batch = batch_of_step(step)
        model.train()
        part = batch.n_tokens / settings.minibatches
        losses = [
            _update(model, [batch.rows[i] for i in chosen], part, optimizer, settings)
            for chosen in updates_of(len(batch.rows), step, settings, optimizer)
        ]
        model.eval()
        unmeasured = dict.fromkeys(("clip_ratio", "kl", "entropy", "sampler_gap"))
        after_step(step, {"loss": sum(losses) / len(losses), **unmeasured})


def _update(model, rows: list[TrainRow], n_tokens: float, optimizer, settings: OptimSettings) -> float:
    """One optimiser update; its loss, in nats a trained token. Nothing happens without rows."""
    if not rows:
        return 0.0
    optimizer.zero_grad()
    total, at_once = 0.0, settings.micro_batch or CPU_ROWS
    rows = sorted(rows, key=lambda row: len(row.prompt_ids) + len(row.completion_ids))  # little padding
    for start in range(0, len(rows), at_once):
        logprobs, mask, weight = token_logprobs(model, rows[start : start + at_once], settings.temperature)
        loss = -(logprobs * mask * weight).sum() / max(n_tokens, 1.0)
        loss.backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], settings.max_grad_norm)
    optimizer.step()
    return total
