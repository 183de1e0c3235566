"""The processes of one training (`accelerate launch`), where there are several: which this is, and what all have.

Every process runs the whole loop on the same rows and keeps the same books; they share the playing of new groups and
the rows of each minibatch. The first one writes.
"""

import os
import shlex
import sys
from typing import Any, NamedTuple

from seal.core.errors import ParamError


def launch(launcher: str) -> None:
    """Become `launcher` (such as: accelerate launch --num_processes 4) around this script; "" goes on as it is."""
    words = shlex.split(launcher)
    try:
        if words:
            os.execvp(words[0], [*words, *sys.argv])
    except OSError as error:
        raise ParamError("SEAL_LAUNCH", f"{words[0]}: {error.strerror}", "name a program, or unset it") from None


class Rank(NamedTuple):
    number: int = 0
    world: int = 1


def rank() -> Rank:
    """This process among those of the launch, by the variables that torchrun and accelerate set."""
    return Rank(int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1)))


def gathered(value: Any) -> list[Any]:
    """The value of every process, in their order. All must call it."""
    if rank().world == 1:
        return [value]
    import torch
    import torch.distributed as dist
    from accelerate import PartialState

    PartialState(cpu=not torch.cuda.is_available())  # joins the group, once
    values: list[Any] = [None] * rank().world
    dist.all_gather_object(values, value)
    return values
