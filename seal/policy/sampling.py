"""Sampling that depends on a rollout's own seed alone, never on its place in a batch."""

import numpy as np
import torch


def uniforms(seed: int, turn: int, step: int, n: int) -> np.ndarray:
    """`n` numbers in [0, 1) for one policy output; a pure function of its arguments."""
    return np.random.Generator(np.random.Philox(key=[seed, (turn << 32) | step])).random(n)


def request_seed(seed: int, turn: int, step: int) -> int:
    """31 bits for a server's sampler; a pure function of its arguments."""
    return int(uniforms(seed, turn, step, 1)[0] * 2**31)


def sample(logits: torch.Tensor, u: torch.Tensor, temperature: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw one id per row by inverse CDF, or take the argmax at temperature 0.

    Args: logits (B, V) float, u (B,) in [0, 1). Returns ids (B,) and their logprobs (B,) under the sampler's own
    distribution (the temperature applied; at temperature 0 under the unscaled softmax).
    """
    logprobs = torch.log_softmax(logits / temperature if temperature else logits, dim=-1)
    if temperature:
        cdf = logprobs.exp().cumsum(-1)
        ids = (cdf < u[:, None] * cdf[:, -1:]).sum(-1).clamp(max=logits.shape[-1] - 1)
    else:
        ids = logits.argmax(-1)
    return ids, logprobs.gather(-1, ids[:, None]).squeeze(-1)
