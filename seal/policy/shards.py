"""A base whose weights the processes of a launch share out (FSDP2): each holds a part and gathers a layer to read it.

`accelerate launch --use_fsdp --fsdp_version 2` asks for it. transformers shards the base while it loads, so no process
ever holds all of it, and its Trainer averages the gradients of what is not sharded: the adapter. That is whole in every
process, so a policy's hash, its files and the state to resume from are those of one process. accelerate's own FSDP
would shard the adapter and its optimiser as well, and does nothing on a CPU: it is kept out.

A forward pass gathers, so all processes must make equally many. In training they do; before they play, each gathers the
whole base once (`whole`), unless a server plays.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from seal.core.errors import ParamError

REQUEST = "ACCELERATE_USE_FSDP"  # set by the launcher, as are the others
UNSUPPORTED = ("FSDP_OFFLOAD_PARAMS", "FSDP_ACTIVATION_CHECKPOINTING")


def requested() -> bool:
    """Whether the launch asks for FSDP. Raises ParamError where it asks for a kind that is not there."""
    if not _set(REQUEST):
        return False
    if (version := os.environ.get("FSDP_VERSION", "1")) != "2":
        raise ParamError("FSDP version of the launch", version, "give --fsdp_version 2")
    for variable in UNSUPPORTED:
        if _set(variable):
            raise ParamError(f"--{variable.lower()} of the launch", "true", "leave it out: it is not built")
    return True


def shards() -> int:
    """Over how many processes a base that is loaded now is sharded; 1: it is whole. Raises as `requested`."""
    return int(os.environ.get("WORLD_SIZE", "1")) if requested() else 1


def sharded(model: Any) -> bool:
    """Whether a model, or the base within a PEFT model, is sharded."""
    return bool(getattr(model, "is_distributed_loading_by_transformers", False))


@contextmanager
def accelerate_aside() -> Iterator[None]:
    """Hide the launcher's request from accelerate and from what transformers does for accelerate."""
    value = os.environ.pop(REQUEST, None)
    try:
        yield
    finally:
        if value is not None:
            os.environ[REQUEST] = value


@contextmanager
def whole(model: Any) -> Iterator[None]:
    """Hold all of the model in every process meanwhile, so that each may use it by itself. All must enter it."""
    if not sharded(model):
        yield
        return
    from torch.distributed.fsdp import FSDPModule

    parts = [module for module in model.modules() if isinstance(module, FSDPModule)]
    for part in parts:
        part.set_reshard_after_forward(False, recurse=False)
        part.unshard()
    try:
        yield
    finally:
        for part in parts:
            part.set_reshard_after_forward(True, recurse=False)
            part.reshard()


def playing(policy: Any) -> AbstractContextManager[None]:
    """In which each process may let a policy act as often as it likes. One that a server plays for needs no weights."""
    return nullcontext() if policy.serve.url else whole(policy.model)


def _set(variable: str) -> bool:
    return os.environ.get(variable, "").lower() in ("1", "true", "yes")
