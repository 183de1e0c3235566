"""The steps of a round in plain torch, for every objective that is a sum over examples. What SFT and DPO share."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from seal.policy.optim import padded, set_rate, trained, update
from seal.train.batch import Batch, TrainRow
from seal.train.optimise import CPU_ROWS, METRICS, Steps, UpdatePlan


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
    objective: Callable[[torch.nn.Module, UpdatePlan], Objective],
    policy: Any,
    plan: UpdatePlan,
    steps: Steps,
    optimizer: torch.optim.Optimizer,
) -> None:
    """With its first argument given, an `Optimise` (seal.train.optimise). `objective` gets the model as it came."""
    model, params = policy.model, plan.params
    goal = objective(model, plan)
    steps.restore()
    for step in range(steps.first, params.steps):
        batch = steps.batch_of(step)
        examples, divisor = goal.examples(batch), max(batch.divisor / params.minibatches, 1.0)
        at_once = max(1, (params.micro_batch or CPU_ROWS) // goal.rows)
        model.train()
        losses = []
        for chosen in minibatches(len(examples), step, plan, optimizer):
            minibatch = sorted((examples[i] for i in chosen), key=lambda example: example.length)  # little padding
            parts = [minibatch[i : i + at_once] for i in range(0, len(minibatch), at_once)]
            summed = (goal.loss(part) / divisor for part in parts)
            parameters, limit = trained(model).values(), params.max_grad_norm
            losses.append(update(summed, parameters, limit, optimizer) if parts else 0.0)
        model.eval()
        steps.finished(step, {**dict.fromkeys(METRICS), "loss": sum(losses) / len(losses)})


def minibatches(n: int, step: int, plan: UpdatePlan, optimizer: torch.optim.Optimizer) -> Iterator[list[int]]:
    """Which of a step's `n` rows each of its updates takes, in order; shuffled anew each iteration. What is random is a
    function of the step. Sets the update's learning rate; ask for the next when the one before is done."""
    torch.manual_seed(plan.seed % 2**31 + step)
    number = step * plan.updates_per_step
    for _ in range(plan.params.num_iterations):
        order = torch.randperm(n).tolist()
        for part in range(plan.params.minibatches):
            set_rate(optimizer, plan.params.lr * plan.rate(number))
            number += 1
            yield sorted(order[part :: plan.params.minibatches])


def token_logprobs(
    model: torch.nn.Module, rows: Sequence[TrainRow], temperature: float = 1.0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logprobs, loss mask and advantages, each (B, K), of the last K positions of rows padded on the right.

    K reaches back to the end of the shortest prompt; prompt and padding have mask 0.
    """
    device = next(model.parameters()).device
    ids, mask = padded([(r.prompt_ids + r.completion_ids, (0,) * len(r.prompt_ids) + r.loss_mask) for r in rows])
    advantages = torch.zeros(ids.shape)
    for i, row in enumerate(rows):
        start = len(row.prompt_ids)
        advantages[i, start : start + len(row.advantages)] = torch.tensor(row.advantages)
    keep = ids.shape[1] - min(len(row.prompt_ids) for row in rows)
    ids = ids.to(device)
    # A causal model never looks at the padding behind a row, so it needs no attention mask.
    logits = model(input_ids=ids, use_cache=False, logits_to_keep=keep + 1).logits[:, :-1].float()
    logprobs = torch.log_softmax(logits / (temperature or 1.0), dim=-1).gather(-1, ids[:, -keep:, None]).squeeze(-1)
    return logprobs, mask[:, -keep:].float().to(device), advantages[:, -keep:].to(device)
