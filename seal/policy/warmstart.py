"""Warm start: supervised training on demonstrations, in plain torch. Resumable; on one CPU, same inputs, same bytes."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import torch

from seal.core.errors import ArtifactError, ParamError, mended_by
from seal.store.files import read_torch, write_torch

Sequences = Sequence[tuple[Sequence[int], Sequence[int]]]  # (ids, loss mask) of one length each
STATE = "warmstart.pt"


def sft(
    model: torch.nn.Module,
    sequences: Sequences,
    steps: int,
    lr: float,
    batch_tokens: int = 8192,
    seed: int = 0,
    on_progress: Callable[[dict[str, float]], None] | None = None,
    checkpoint_dir: Path | None = None,
    checkpoint_every: int = 50,
    micro_tokens: int = 4096,
    warmup: int = 10,
    max_grad_norm: float = 1.0,
) -> list[float]:
    """Train the parameters that require gradients, in place; returns the loss (nats a trained token) of every step.

    Each step is one AdamW update on about `batch_tokens` tokens (at least one sequence), computed in parts of about
    `micro_tokens`. The learning rate rises over `warmup` steps and falls linearly to 0. With `checkpoint_dir`, a folder
    that belongs to exactly these inputs, an interrupted call leaves its state there and the next one goes on from it;
    a finished call removes it. `on_progress` gets {"step", "loss", "tokens"}.
    """
    if not sequences:
        raise ParamError(
            "warm start demonstrations", "none", "choose training tasks whose demonstrations fit the context"
        )
    parameters = [p for p in model.parameters() if p.requires_grad]
    if not parameters:
        raise ParamError("warm start", "the policy has nothing to train", "set policy.train to lora or full")
    optimizer = torch.optim.AdamW(parameters, lr=lr, weight_decay=0.0)
    losses = _restore(checkpoint_dir, parameters, optimizer) if checkpoint_dir else []
    was_training = model.training
    model.train()
    batches = _batches([len(ids) for ids, _ in sequences], batch_tokens, seed)
    for step, batch in zip(range(steps), batches, strict=False):
        if step < len(losses):
            continue
        torch.manual_seed(seed % 2**31 + step)  # dropout, where a model has any
        for group in optimizer.param_groups:
            group["lr"] = lr * min((step + 1) / max(warmup, 1), (steps - step) / max(steps - warmup, 1), 1.0)
        losses.append(_update(model, [sequences[i] for i in batch], micro_tokens, optimizer, parameters, max_grad_norm))
        if on_progress:
            tokens = sum(len(sequences[i][0]) for i in batch)
            on_progress({"step": step, "loss": losses[-1], "tokens": tokens})
        if checkpoint_dir and (step + 1) % checkpoint_every == 0 and step + 1 < steps:
            _save(checkpoint_dir, parameters, optimizer, losses)
    model.train(was_training)
    if checkpoint_dir:
        (checkpoint_dir / STATE).unlink(missing_ok=True)
    return losses


def _batches(lengths: Sequence[int], batch_tokens: int, seed: int) -> Iterator[list[int]]:
    """Endless batches, each sorted by length: epochs in the seed's order, cut at `batch_tokens`, none twice in one."""
    generator = torch.Generator().manual_seed(seed % 2**63)
    batch: list[int] = []
    for i in (i for _ in count() for i in torch.randperm(len(lengths), generator=generator).tolist()):
        if batch and (i in batch or sum(lengths[j] for j in batch) + lengths[i] > batch_tokens):
            yield sorted(batch, key=lambda j: (lengths[j], j))
            batch = []
        batch.append(i)


def _update(model, sequences: Sequences, micro_tokens: int, optimizer, parameters, max_grad_norm: float) -> float:
    """One update; its loss before it."""
    optimizer.zero_grad()
    trained = sum(sum(mask[1:]) for _, mask in sequences)
    total = 0.0
    for part in parts(sequences, micro_tokens):
        loss = _loss_sum(model, part) / max(trained, 1)
        loss.backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_(parameters, max_grad_norm)
    optimizer.step()
    return total


def parts(sequences: Sequences, micro_tokens: int) -> Iterator[list]:
    """Runs of sequences (sorted by length) that fill about `micro_tokens` when padded."""
    part: list = []
    for sequence in sequences:
        if part and (len(part) + 1) * len(sequence[0]) > micro_tokens:
            yield part
            part = []
        part.append(sequence)
    yield part


def _loss_sum(model: torch.nn.Module, sequences: Sequences) -> torch.Tensor:
    """Summed negative log likelihood of the trained tokens, in float32.

    Rows are padded on the right, where a causal model does not look. The head only runs at positions where some row
    has a trained token next: over 49k words it would cost more than the rest.
    """
    device = next(model.parameters()).device
    ids = torch.zeros(len(sequences), max(len(row) for row, _ in sequences), dtype=torch.long)
    labels = torch.full_like(ids, -100)
    for i, (row, mask) in enumerate(sequences):
        ids[i, : len(row)] = torch.tensor(row)
        labels[i, : len(row)] = torch.tensor(row).masked_fill(torch.tensor(mask) == 0, -100)
    positions = (labels[:, 1:] != -100).any(0).nonzero().squeeze(1)
    if not len(positions):
        return next(p for p in model.parameters() if p.requires_grad).sum() * 0.0
    labels = labels[:, positions + 1].to(device)
    logits = model(input_ids=ids.to(device), use_cache=False, logits_to_keep=positions.to(device)).logits
    return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), reduction="sum")


def _save(
    folder: Path, parameters: list[torch.nn.Parameter], optimizer: torch.optim.Optimizer, losses: list[float]
) -> None:
    state = {"parameters": [p.detach() for p in parameters], "optimizer": optimizer.state_dict(), "losses": losses}
    write_torch(folder / STATE, state)


def _restore(folder: Path, parameters: list[torch.nn.Parameter], optimizer: torch.optim.Optimizer) -> list[float]:
    """Losses so far, with parameters and optimiser as they were; [] where nothing was recorded."""
    if not (folder / STATE).exists():
        return []
    with mended_by(f"remove it, the warm start then begins anew: rm {folder / STATE}"):
        state = read_torch(folder / STATE, {"parameters": list, "optimizer": dict, "losses": list})
    shapes = [p.shape for p in parameters]
    if [p.shape for p in state["parameters"]] != shapes:
        raise ArtifactError("warm start state", folder, "it belongs to another model: remove the folder")
    with torch.no_grad():
        for parameter, value in zip(parameters, state["parameters"], strict=True):
            parameter.copy_(value)
    optimizer.load_state_dict(state["optimizer"])
    return state["losses"]
