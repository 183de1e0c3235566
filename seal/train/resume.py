"""The state of an interrupted training, in an ignored folder that the caller keys by a hash of its inputs.

state.pt holds tensors only and is read as such (no pickled code); the rows so far are JSON, one file a step. The step
in state.pt is the last to count: files of later steps are overwritten.
"""

import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from seal.core.errors import mended_by
from seal.store.files import atomic_file, read_json, read_torch, write_torch

if TYPE_CHECKING:
    import torch


def to_json(value: Any) -> str:
    """Dataclasses, dicts, lists and plain values as one line of JSON."""
    # asdict would copy every token on its own
    return json.dumps(value, default=lambda item: {f.name: getattr(item, f.name) for f in fields(item)})


def of_json(kind: Any, data: Any) -> Any:
    """The inverse for a dataclass made of dataclasses, homogeneous tuples, mappings and plain values."""
    if is_dataclass(kind):
        hints = _hints(kind)
        return kind(**{name: of_json(hints[name], value) for name, value in data.items()})
    if get_origin(kind) is tuple:
        return tuple(of_json(get_args(kind)[0], item) for item in data)
    return data


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return types.MappingProxyType(get_type_hints(kind))


def save(folder: Path, step: int, rows: Any, model: "torch.nn.Module", optimizer: "torch.optim.Optimizer") -> None:
    """Record that `step` is done. Atomic: a kill leaves the state of the step before."""
    from seal.policy.optim import state_of

    with atomic_file(folder / f"step_{step:04d}.json") as partial:
        partial.write_text(to_json(rows))
    write_torch(folder / "state.pt", {"step": step, **state_of(model, optimizer)})


def load(folder: Path, shape: Any = object) -> tuple[dict[str, Any], list[Any]] | None:
    """(state, rows of the steps done, each of a shape), or None where nothing was recorded. ArtifactError: damaged."""
    if not (folder / "state.pt").exists():
        return None
    with mended_by(f"remove the folder, the training then begins anew: rm -r {folder}"):
        state = read_torch(folder / "state.pt", {"step": int, "model": dict, "optimizer": dict})
        return state, [read_json(folder / f"step_{step:04d}.json", shape) for step in range(state["step"] + 1)]
