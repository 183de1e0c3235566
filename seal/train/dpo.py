"""Direct preference optimisation on pairs of one task. Plain torch; the maths is TRL's (sigmoid loss).

loss = - weight * log sigmoid(beta * ((log p - log ref)(chosen) - (log p - log ref)(rejected))), a mean over pairs.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch

from seal.policy.optim import copy_into, trained
from seal.train.batch import Batch
from seal.train.descent import Example, Objective, descend, token_logprobs
from seal.train.optimise import CPU_ROWS, UpdatePlan

AT_ONCE = CPU_ROWS // 2  # pairs of one forward pass


def preference(model: torch.nn.Module, plan: UpdatePlan) -> Objective:
    """DPO, over batches of `seal.train.preferences.pair_batch`.

    The reference is `plan.reference`, or the policy as it came. Its logprobs are taken when a step begins, so one set
    of weights is swapped in for the time of a forward pass and no second model is held.
    """
    parameters = trained(model)
    reference = {name: (plan.reference or parameters)[name].detach().clone().to(p) for name, p in parameters.items()}

    @contextmanager
    def reference_weights() -> Iterator[None]:
        own = {name: p.detach().clone() for name, p in parameters.items()}
        copy_into(parameters, reference)
        try:
            yield
        finally:
            copy_into(parameters, own)

    def examples(batch: Batch) -> list[Example]:
        pairs = [Example(rows) for rows in zip(batch.rows[::2], batch.rows[1::2], strict=True)]
        pairs.sort(key=lambda pair: pair.length)  # little padding
        with reference_weights(), torch.no_grad():
            parts = [_margins(model, pairs[i : i + AT_ONCE]).tolist() for i in range(0, len(pairs), AT_ONCE)]
        return [Example(pair.rows, margin) for pair, margin in zip(pairs, sum(parts, []), strict=True)]

    def loss(pairs: Sequence[Example]) -> torch.Tensor:
        margins = _margins(model, pairs)
        weights = margins.new_tensor([max(pair.rows[0].advantages) for pair in pairs])
        drift = plan.params.dpo_beta * (margins - margins.new_tensor([pair.reference for pair in pairs]))
        return -(weights * torch.nn.functional.logsigmoid(drift)).sum()

    return Objective(examples, loss, rows=2)


train = partial(descend, preference)


def _margins(model: torch.nn.Module, pairs: Sequence[Example]) -> torch.Tensor:
    """(N,) log p(chosen) - log p(rejected), summed over the tokens that the policy says."""
    logprobs, mask, _ = token_logprobs(model, [row for pair in pairs for row in pair.rows])
    sums = (logprobs * mask).sum(1)
    return sums[::2] - sums[1::2]
