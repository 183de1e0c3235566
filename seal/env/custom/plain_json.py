"""Any Python value as plain JSON, the same for equal values in every process: no addresses, no order of a set."""

import json
import math
import sys
from collections import deque
from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Any
from uuid import UUID

from seal.core.types import Json

_DATA = (str, int, float, Mapping, list, tuple, deque, set, frozenset, Enum, type(None))
_AS_TEXT = (date, time, timedelta, Decimal, Fraction, PurePath, UUID, bytes)


def to_json(value: Any, above: tuple[int, ...] = ()) -> Json:
    """Mappings get text keys, sets are sorted, an object is its public attributes, dates and the like are text.

    An object of the standard library (a lock, a connection) counts by its type alone, and a cycle is cut.
    """
    if isinstance(value, Enum):
        return to_json(value.value, above)
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, _AS_TEXT):
        return str(value)
    if id(value) in above:
        return "<cycle>"
    above = (*above, id(value))
    if isinstance(value, Mapping):
        return {_key(key, above): to_json(item, above) for key, item in value.items()}
    if isinstance(value, list | tuple | deque):
        return [to_json(item, above) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((to_json(item, above) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    if is_opaque(value):
        return f"<{type(value).__qualname__}>"
    if hasattr(value, "tolist"):  # an array or a scalar of numpy and its kin
        return to_json(value.tolist(), above)
    return {name: to_json(item, above) for name, item in attributes(value).items()}


def is_opaque(value: Any) -> bool:
    """Whether a value is a part of the language or its library, and not data."""
    return type(value).__module__.partition(".")[0] in sys.stdlib_module_names and not isinstance(
        value, (*_DATA, *_AS_TEXT)
    )


def attributes(value: Any) -> dict[str, Any]:
    """Public attributes of an object, in the order they were set."""
    slots = (name for kind in type(value).__mro__ for name in vars(kind).get("__slots__", ()))
    found = {name: getattr(value, name) for name in slots if hasattr(value, name)} | getattr(value, "__dict__", {})
    return {name: item for name, item in found.items() if not name.startswith("_")}


def _key(key: Any, above: tuple[int, ...]) -> str:
    return key if isinstance(key, str) else json.dumps(to_json(key, above), sort_keys=True)
