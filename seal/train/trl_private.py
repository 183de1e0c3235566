"""What of TRL's private code seal.train.trainer overrides, calls or relies on, in one place.

A test compares each with the installed TRL. Where it fails, read what changed in TRL between VERSION and the new one,
adapt seal/train/trainer.py, run tests/test_train_grpo.py, and write the new version and digests here.
"""

import hashlib
import inspect
from typing import NamedTuple

VERSION = "1.16.0"  # of TRL, for which the digests hold


class Private(NamedTuple):
    """`name`: of a method of GRPOTrainer, or of a function of trl.trainer.utils; `digest`: of its source."""

    name: str
    why: str
    digest: str


METHODS = (
    Private("__init__", "sets _metrics, _step, _buffered_inputs, loss_type, beta, ref_model", "96bc195a9f32b157"),
    Private("_prepare_inputs", "overridden: several processes have their rows in order", "7eb9d5bd2dea4ad0"),
    Private("_generate_and_score_completions", "extended: advantages (B, T), token count", "4cb5a70fe6f288cf"),
    Private("_get_per_token_logps_and_entropies", "overridden: shared prompts, no padding", "2396e4a839293f23"),
    Private("_compute_loss", "extended: says which tokens are scored", "d7676d391614c24f"),
    Private("compute_loss", "called with a part of a minibatch", "e860ae177a8503b6"),
    Private("training_step", "overridden: parts of `micro_batch` rows, counts _step", "da68c0a774c8ac88"),
)
FUNCTIONS = (
    Private("add_fused_lm_head", "of a reference: logprobs without a copy of all logits", "4871c7bafcef82c9"),
    Private("pad", "rows of unequal length", "4293d77c16f51103"),
    Private("split_tensor_dict", "a step's rows into minibatches", "4f587fafefe22158"),
)


def digest(code: object) -> str:
    """16 hex digits over the source of a function or method."""
    return hashlib.blake2b(inspect.getsource(code).encode(), digest_size=8).hexdigest()
