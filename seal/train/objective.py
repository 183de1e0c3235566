"""The steps of a round in plain torch, for every objective that is a sum over examples. What SFT and DPO share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from seal.train.batch import Batch, TrainRow
from seal.train.settings import CPU_ROWS, OptimSettings, StepMetrics
from seal.train.updates import updates_of


@dataclass(frozen=True, slots=True)
class Example:
    """What a minibatch holds as a whole: a row to imitate, or a pair and its margin under the reference."""

    rows: tuple[TrainRow, ...]
    reference: float = 0.0

    @property
    def length(self) -> int:
        return max(len(row.prompt_ids) + len(row.completion_ids) for row in self.rows)


@dataclass(frozen=True, slots=True)
class Objective:
    """The `examples` of a step, each of `rows` rows, and the `loss` of some of them, a sum in nats."""

    examples: Callable[[Batch], list[Example]]
    loss: Callable[[Sequence[Example]], torch.Tensor]
    rows: int = 1


def descend(
    objective: Callable[[torch.nn.Module, OptimSettings], Objective],
    model: torch.nn.Module,
    tokenizer: Any,
    batch_of_step: Callable[[int], Batch],
    settings: OptimSettings,
    optimizer: torch.optim.Optimizer,
    after_step: Callable[[int, StepMetrics], None],
    first_step: int = 0,
    restore: Callable[[], None] | None = None,
) -> None:
    """With its first argument given, an `Optimise` (seal.train.settings). `objective` gets the model as it came."""
    wanted = objective(model, settings)
    if restore:
        restore()
    for step in range(first_step, settings.steps):
        batch = batch_of_step(step)
        examples, divisor = wanted.examples(batch), max(batch.divisor / settings.minibatches, 1.0)
        model.train()
        losses = [
            _update(model, wanted, [examples[i] for i in chosen], divisor, optimizer, settings)
            for chosen in updates_of(len(examples), step, settings, optimizer)
        ]
        model.eval()
        unmeasured = dict.fromkeys(("clip_ratio", "kl", "entropy", "sampler_gap"))
        after_step(step, {"loss": sum(losses) / len(losses), **unmeasured})


def _update(
    model: torch.nn.Module,
    wanted: Objective,
    examples: list[Example],
    divisor: float,
    optimizer: torch.optim.Optimizer,
    settings: OptimSettings,
) -> float:
    """One optimiser update; its loss. Nothing happens without examples."""
    if not examples:
        return 0.0
    optimizer.zero_grad()
    total, at_once = 0.0, max(1, (settings.micro_batch or CPU_ROWS) // wanted.rows)
    examples = sorted(examples, key=lambda example: example.length)  # little padding
    for start in range(0, len(examples), at_once):
        loss = wanted.loss(examples[start : start + at_once]) / divisor
        loss.backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], settings.max_grad_norm)
    optimizer.step()
    return total
