"""What every training in plain torch shares: optimiser, one update, learning rate, padding, the state to resume.

Used by the warm start and the reader's pretraining here, and by SFT, DPO and (the optimiser) GRPO in seal.train.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

Sequences = Sequence[tuple[Sequence[int], Sequence[int]]]  # (ids, loss mask) of one length each


def trained(model: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """The parameters that training changes, by name."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def adamw(model: torch.nn.Module, lr: float) -> torch.optim.AdamW:
    """An optimiser of the parameters that are trained, without weight decay."""
    return torch.optim.AdamW(trained(model).values(), lr=lr, weight_decay=0.0)


def rise_and_fall(update: int, updates: int, rise: int) -> float:
    """Share of the learning rate at an update, counted from 0: it rises over `rise` of them and falls linearly to 0."""
    rise = max(rise, 1)
    return max(min((update + 1) / rise, (updates - update) / max(updates - rise, 1), 1.0), 0.0)


def set_rate(optimizer: torch.optim.Optimizer, lr: float) -> None:
    """The learning rate of the updates to come."""
    for group in optimizer.param_groups:
        group["lr"] = lr


def update(
    losses: Iterable[torch.Tensor],
    parameters: Iterable[torch.nn.Parameter],
    max_grad_norm: float,
    *optimizers: torch.optim.Optimizer,
) -> float:
    """One update by the sum of `losses`, of which one at a time is computed; that sum, before the update."""
    for optimizer in optimizers:
        optimizer.zero_grad()
    total = 0.0
    for loss in losses:
        loss.backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_(parameters, max_grad_norm)
    for optimizer in optimizers:
        optimizer.step()
    return total


def padded(sequences: Sequences) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids (B, T) padded on the right with 0, where a causal model does not look, and the loss mask (B, T), bool."""
    ids = torch.zeros(len(sequences), max(len(row) for row, _ in sequences), dtype=torch.long)
    mask = torch.zeros(ids.shape, dtype=torch.bool)
    for i, (row, row_mask) in enumerate(sequences):
        ids[i, : len(row)] = torch.tensor(row)
        mask[i, : len(row)] = torch.tensor(row_mask, dtype=torch.bool)
    return ids, mask


def copy_into(parameters: Mapping[str, torch.Tensor], values: Mapping[str, torch.Tensor]) -> None:
    """Write `values` into the parameters of their names, in place."""
    with torch.no_grad():
        for name, value in values.items():
            parameters[name].copy_(value)


def state_of(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """What `restore` puts back: tensors and plain values alone."""
    return {"model": {name: p.detach() for name, p in trained(model).items()}, "optimizer": optimizer.state_dict()}


def restore(state: Mapping[str, Any], model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Put the recorded parameters and optimiser state back, in place."""
    copy_into(trained(model), state["model"])
    optimizer.load_state_dict(state["optimizer"])
