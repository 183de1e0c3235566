"""Plain torch: token logprobs (of SFT, DPO and the parity tests), the optimiser (of all), weights to compare with."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

import torch

from seal.train.batch import TrainRow
from seal.train.settings import OptimSettings


def adamw(model: torch.nn.Module, lr: float) -> torch.optim.AdamW:
    """The optimiser of a round, over the parameters that are trained; its state is carried across the steps."""
    return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr, weight_decay=0.0)


def updates_of(n: int, step: int, settings: OptimSettings, optimizer: torch.optim.Optimizer) -> Iterator[list[int]]:
    """Which of a step's `n` rows each of its updates takes, in order; shuffled anew each iteration. What is random is a
    function of the step. Sets the update's learning rate; ask for the next when the one before is done."""
    torch.manual_seed(settings.seed % 2**31 + step)
    update = step * settings.num_iterations * settings.minibatches
    for _ in range(settings.num_iterations):
        order = torch.randperm(n).tolist()
        for part in range(settings.minibatches):
            set_rate(optimizer, settings, update)
            update += 1
            yield sorted(order[part :: settings.minibatches])


def set_rate(optimizer: torch.optim.Optimizer, settings: OptimSettings, update: int) -> None:
    """The learning rate of an update, counted from 0 over all steps of the round."""
    for group in optimizer.param_groups:
        group["lr"] = settings.lr * settings.rate(update)


def frozen(
    model: torch.nn.Module, reference: Mapping[str, torch.Tensor] | None = None
) -> Callable[[], AbstractContextManager]:
    """A context in which the model's trained weights are `reference`, or those it has now (name -> values)."""
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    kept = {name: (reference[name] if reference else p).detach().clone().to(p) for name, p in trained.items()}

    @contextmanager
    def swapped() -> Iterator[None]:
        own = {name: p.detach().clone() for name, p in trained.items()}
        fill(trained, kept)
        try:
            yield
        finally:
            fill(trained, own)

    return swapped


def fill(parameters: Mapping[str, torch.Tensor], values: Mapping[str, torch.Tensor]) -> None:
    """Write `values` into the parameters of their names, in place."""
    with torch.no_grad():
        for name, value in values.items():
            parameters[name].copy_(value)


def token_logprobs(
    model: torch.nn.Module, rows: Sequence[TrainRow], temperature: float = 1.0
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logprobs, loss mask and advantages, each (B, K), of the last K positions of rows padded on the right.

    K reaches back to the end of the shortest prompt; prompt and padding have mask 0.
    """
    device = next(model.parameters()).device
    lengths = [len(row.prompt_ids) + len(row.completion_ids) for row in rows]
    ids = torch.zeros(len(rows), max(lengths), dtype=torch.long)
    mask, advantages = torch.zeros(ids.shape), torch.zeros(ids.shape)
    for i, row in enumerate(rows):
        completion = slice(len(row.prompt_ids), lengths[i])
        ids[i, : lengths[i]] = torch.tensor(row.prompt_ids + row.completion_ids)
        mask[i, completion] = torch.tensor(row.loss_mask, dtype=torch.float32)
        advantages[i, completion] = torch.tensor(row.advantages)
    keep = ids.shape[1] - min(len(row.prompt_ids) for row in rows)
    ids = ids.to(device)
    # A causal model never looks at the padding behind a row, so it needs no attention mask.
    logits = model(input_ids=ids, use_cache=False, logits_to_keep=keep + 1).logits[:, :-1].float()
    logprobs = torch.log_softmax(logits / (temperature or 1.0), dim=-1).gather(-1, ids[:, -keep:, None]).squeeze(-1)
    return logprobs, mask[:, -keep:].to(device), advantages[:, -keep:].to(device)
