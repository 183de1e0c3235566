"""Warm start: supervised training on demonstrations, in plain torch. Resumable; on one CPU, same inputs, same bytes."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import torch

from seal.core.errors import ArtifactError, ParamError, mended_by
from seal.policy.optim import Sequences, adamw, padded, restore, rise_and_fall, set_rate, state_of, trained, update
from seal.settings.policies import WarmStartParams
from seal.store.files import read_torch, write_torch

STATE = "warmstart.pt"
SAVE_EVERY = 5  # steps
MICRO_TOKENS = 4096  # padded tokens of one forward pass
RISE = 10  # steps over which the learning rate rises
MAX_GRAD_NORM = 1.0


def warm_start(
    model: torch.nn.Module,
    sequences: Sequences,
    params: WarmStartParams,
    seed: int = 0,
    on_progress: Callable[[dict[str, float]], None] | None = None,
    resume_dir: Path | None = None,
) -> list[float]:
    """Train the parameters that require gradients, in place; returns the loss (nats a trained token) of every step.

    Each step is one AdamW update on about `params.batch_tokens` tokens (at least one sequence), computed in parts of
    about MICRO_TOKENS. The learning rate rises over RISE steps and falls linearly to 0. With `resume_dir`, a folder
    that belongs to exactly these inputs, an interrupted call leaves its state there and the next one goes on from it;
    a finished call removes it. `on_progress` gets {"step", "loss", "tokens"}.
    Raises ParamError without sequences or parameters to train.
    """
    if not sequences:
        remedy = "choose training tasks whose demonstrations fit the context"
        raise ParamError("warm start demonstrations", "none", remedy)
    if not trained(model):
        raise ParamError("warm start", "the policy has nothing to train", "set policy.train to lora or full")
    optimizer, steps = adamw(model, params.lr), params.steps
    losses = _restore(resume_dir / STATE, model, optimizer) if resume_dir else []
    was_training = model.training
    model.train()
    batches = _batches([len(ids) for ids, _ in sequences], params.batch_tokens, seed)
    for step, batch in zip(range(steps), batches, strict=False):
        if step < len(losses):
            continue
        torch.manual_seed(seed % 2**31 + step)  # dropout, where a model has any
        set_rate(optimizer, params.lr * rise_and_fall(step, steps, RISE))
        chosen = [sequences[i] for i in batch]
        tokens = max(sum(sum(mask[1:]) for _, mask in chosen), 1)
        parts = (_loss_sum(model, part) / tokens for part in parts_of(chosen, MICRO_TOKENS))
        losses.append(update(parts, trained(model).values(), MAX_GRAD_NORM, optimizer))
        if on_progress:
            on_progress({"step": step, "loss": losses[-1], "tokens": sum(len(ids) for ids, _ in chosen)})
        if resume_dir and (step + 1) % SAVE_EVERY == 0 and step + 1 < steps:
            write_torch(resume_dir / STATE, {**state_of(model, optimizer), "losses": losses})
    model.train(was_training)
    if resume_dir:
        (resume_dir / STATE).unlink(missing_ok=True)
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


def parts_of(sequences: Sequences, micro_tokens: int) -> Iterator[list]:
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

    The head only runs at positions where some row has a trained token next: over 49k words it would cost more than the
    rest.
    """
    device = next(model.parameters()).device
    ids, mask = padded(sequences)
    labels = ids.masked_fill(~mask, -100)
    positions = (labels[:, 1:] != -100).any(0).nonzero().squeeze(1)
    if not len(positions):
        return next(p for p in model.parameters() if p.requires_grad).sum() * 0.0
    labels = labels[:, positions + 1].to(device)
    logits = model(input_ids=ids.to(device), use_cache=False, logits_to_keep=positions.to(device)).logits
    return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten(), reduction="sum")


def _restore(path: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> list[float]:
    """Losses so far, with parameters and optimiser as they were; [] where nothing was recorded."""
    if not path.exists():
        return []
    with mended_by(f"remove it, the warm start then begins anew: rm {path}"):
        state = read_torch(path, {"model": dict, "optimizer": dict, "losses": list})
    shapes = {name: p.shape for name, p in trained(model).items()}
    if {name: value.shape for name, value in state["model"].items()} != shapes:
        raise ArtifactError("warm start state", path.parent, "it belongs to another model: remove the folder")
    restore(state, model, optimizer)
    return state["losses"]
