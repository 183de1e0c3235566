"""The recipe of the shipped reader: `python -m seal.policy.pretrain OUT.safetensors`. Resumable; an hour on a core.

Three phases of one run: drills (recall of word pairs, which grow the look-up heads), one-turn tasks with few tools,
then everything. Every batch is a function of its step, so an interrupted run goes on as if it had not stopped.
"""

import argparse
import math
import random
from pathlib import Path

import torch
from safetensors.torch import save_file

from seal.policy.nano import nano_config, shared_weights
from seal.policy.nano_model import NanoForCausalLM
from seal.policy.optim import padded, set_rate, update
from seal.policy.reader import demonstration
from seal.policy.warmstart import parts_of
from seal.policy.words import SPECIAL, WordCodec, build_vocabulary

STEPS, DRILLS = 4000, 150
EPISODES, DRILL_EPISODES = 40, 32
MUON_LR, ADAM_LR, WARMUP, INIT = 4e-3, 2e-3, 100, 0.08
MICRO_TOKENS = 3000  # padded tokens of one forward pass: rows of like length share it

Example = tuple[list[int], list[int]]  # ids and loss mask, one length


def drill(rng: random.Random, vocabulary: int) -> Example:
    """Pairs of words, then the same pairs twice more in other orders; second words of the repeats carry the loss."""
    n = rng.randrange(4, 14)
    words = rng.sample(range(len(SPECIAL), vocabulary), 2 * n)
    pairs = list(zip(words[:n], words[n:], strict=True))
    ids = [word for pair in pairs for word in pair]
    mask = [0] * len(ids)
    for _ in range(2):
        rng.shuffle(pairs)
        for pair in pairs:
            ids += pair
            mask += [0, 1]
    return ids, mask


def examples(step: int, codec: WordCodec, steps: int = STEPS) -> list[Example]:
    """The batch of a step, shortest first."""
    rng = random.Random(f"reader/{step}")
    if step < DRILLS or (step < 3 * DRILLS and step % 3 == 0):
        batch = [drill(rng, len(codec.vocabulary)) for _ in range(DRILL_EPISODES)]
    else:
        share = step / steps
        turns = 1 if share < 0.3 else 2 if share < 0.55 else 3
        n_tools = 2 if share < 0.1 else 3 if share < 0.25 else 4
        batch = [demonstration(rng, codec, turns, n_tools) for _ in range(EPISODES)]
    return sorted(batch, key=lambda example: len(example[0]))


def optimizers(model: NanoForCausalLM) -> list[torch.optim.Optimizer]:
    """Muon (Jordan et al. 2024) for the matrices inside the blocks, AdamW for the rest.

    At equal steps its running loss was a tenth below AdamW's for all.
    """
    inner = {name: p for name, p in model.named_parameters() if p.ndim == 2 and ".layers." in name}
    outer = [p for name, p in model.named_parameters() if name not in inner]
    return [
        torch.optim.Muon(inner.values(), lr=MUON_LR, momentum=0.95, weight_decay=0.01, adjust_lr_fn="match_rms_adamw"),
        torch.optim.AdamW(outer, lr=ADAM_LR, betas=(0.9, 0.98), weight_decay=0.01),
    ]


def loss_of(model: NanoForCausalLM, ids: torch.Tensor, mask: torch.Tensor, tokens: int) -> torch.Tensor:
    """Cross-entropy of the trained tokens, as a share of the mean over a batch of `tokens`; logits for those alone."""
    trained = mask[:, 1:]
    hidden = model.model(ids).last_hidden_state[:, :-1][trained]
    return torch.nn.functional.cross_entropy(model.lm_head(hidden), ids[:, 1:][trained]) * trained.sum() / tokens


def pretrain(checkpoint: Path, steps: int = STEPS, report_every: int = 100) -> NanoForCausalLM:
    """Train the reader, going on from `checkpoint` where it exists."""
    codec = WordCodec(build_vocabulary())
    torch.manual_seed(0)
    config = nano_config()
    config.initializer_range = INIT
    model = NanoForCausalLM(config)
    tools = optimizers(model)
    first = 0
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        for tool, saved in zip(tools, state["optimizers"], strict=True):
            tool.load_state_dict(saved)
        first = state["step"] + 1
    for step in range(first, steps):
        decay = 0.95 * 0.5 * (1 + math.cos(math.pi * step / steps)) + 0.05
        for peak, tool in zip((MUON_LR, ADAM_LR), tools, strict=True):
            set_rate(tool, peak * (min(1.0, (step + 1) / WARMUP) * decay))
        batch = examples(step, codec, steps)
        tokens = sum(sum(mask[1:]) for _, mask in batch)
        losses = (loss_of(model, *padded(part), tokens) for part in parts_of(batch, MICRO_TOKENS))
        total = update(losses, model.parameters(), 1.0, *tools)
        if step % report_every == report_every - 1 or step == steps - 1:
            print(f"step {step + 1}/{steps} loss {total:.3f}", flush=True)
            state = {"model": model.state_dict(), "optimizers": [tool.state_dict() for tool in tools], "step": step}
            torch.save(state, checkpoint.with_suffix(".tmp"))
            checkpoint.with_suffix(".tmp").replace(checkpoint)
    return model.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model = pretrain(args.out.with_suffix(".checkpoint"))
    save_file(shared_weights(model, torch.float16), args.out)


if __name__ == "__main__":
    main()
