"""Direct preference optimisation on pairs of one task. Plain torch; the maths is TRL's (sigmoid loss).

loss = - weight * log sigmoid(beta * ((log p - log ref)(chosen) - (log p - log ref)(rejected))), a mean over pairs.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from seal.train.batch import Batch, TrainRow
from seal.train.plain import frozen, token_logprobs, updates_of
from seal.train.settings import CPU_ROWS, OptimSettings, StepMetrics

AT_ONCE = CPU_ROWS // 2  # pairs of one forward pass


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
    """DPO: an `Optimise` (seal.train.settings) over batches of `seal.train.preferences.pair_batch`.

    The reference is `settings.reference`, or the policy as it came. Its logprobs are taken when a step begins, so one
    set of weights is swapped in for the time of a forward pass and no second model is held.
    """
    swapped = frozen(model, settings.reference)
    if restore:
        restore()
    for step in range(first_step, settings.steps):
        batch = batch_of_step(step)
        pairs = sorted(zip(batch.rows[::2], batch.rows[1::2], strict=True), key=_tokens)  # little padding
        with swapped(), torch.no_grad():
            parts = [_margins(model, pairs[i : i + AT_ONCE]) for i in range(0, len(pairs), AT_ONCE)]
        reference = torch.cat(parts).tolist() if parts else []
        model.train()
        part = batch.n_tokens / settings.minibatches
        losses = [
            _update(model, [pairs[i] for i in chosen], [reference[i] for i in chosen], part, optimizer, settings)
            for chosen in updates_of(len(pairs), step, settings, optimizer)
        ]
        model.eval()
        unmeasured = dict.fromkeys(("clip_ratio", "kl", "entropy", "sampler_gap"))
        after_step(step, {"loss": sum(losses) / len(losses), **unmeasured})


def _update(model, pairs: list, reference: list[float], n_pairs: float, optimizer, settings: OptimSettings) -> float:
    """One optimiser update; its loss. Nothing happens without pairs."""
    if not pairs:
        return 0.0
    optimizer.zero_grad()
    total, at_once = 0.0, max(1, settings.micro_batch // 2) if settings.micro_batch else AT_ONCE
    for start in range(0, len(pairs), at_once):
        part = slice(start, start + at_once)
        margins = _margins(model, pairs[part])
        weights = margins.new_tensor([max(chosen.advantages) for chosen, _ in pairs[part]])
        drift = settings.dpo_beta * (margins - margins.new_tensor(reference[part]))
        loss = -(weights * torch.nn.functional.logsigmoid(drift)).sum() / max(n_pairs, 1.0)
        loss.backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], settings.max_grad_norm)
    optimizer.step()
    return total


def _tokens(pair: tuple[TrainRow, TrainRow]) -> int:
    return max(len(row.prompt_ids) + len(row.completion_ids) for row in pair)


def _margins(model: torch.nn.Module, pairs: Sequence[tuple[TrainRow, TrainRow]]) -> torch.Tensor:
    """(N,) log p(chosen) - log p(rejected), summed over the tokens that the policy says."""
    logprobs, mask, _ = token_logprobs(model, [row for pair in pairs for row in pair])
    sums = (logprobs * mask).sum(1)
    return sums[::2] - sums[1::2]
