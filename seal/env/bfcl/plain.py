"""Objects of a BFCL world -> plain JSON-like values, such that equal values mean equal by the official comparison."""

import marshal
from typing import Any

from seal.core.types import Json

_SCALARS = frozenset((str, int, float, bool, type(None)))


def copied(value: Json) -> Json:
    """A deep copy of a JSON-like value; much faster than copy.deepcopy. Raises ValueError for anything else."""
    return value if type(value) in _SCALARS else marshal.loads(marshal.dumps(value))


def public_state(instance: Any) -> dict[str, Json]:
    """Every public attribute; the official checker compares no others."""
    return {name: plain(value) for name, value in vars(instance).items() if not name.startswith("_")}


def plain(value: Any, above: tuple[int, ...] = ()) -> Json:
    """A file is its name and content, a directory its name and contents (as their __eq__ has it), a cycle is cut."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is dict:
        return {key: item if type(item) in _SCALARS else plain(item, above) for key, item in value.items()}
    if kind is list or kind is tuple:
        return kind([item if type(item) in _SCALARS else plain(item, above) for item in value])
    if hasattr(value, "content"):
        return {"name": value.name, "content": plain(value.content)}
    if hasattr(value, "contents"):
        if id(value) in above:
            return {"cycle": len(above)}
        return {"name": value.name, "contents": plain(value.contents, (*above, id(value)))}
    return repr(value)
