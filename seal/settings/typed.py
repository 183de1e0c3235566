"""Reading frozen dataclasses from plain mappings: unknown keys, wrong types and values out of range are ParamErrors.

Understood annotations: bool, int, float, str, Literal, tuple[T, ...], tuple[T, T], Mapping[str, T], dataclasses, and
unions of them. A field's metadata may hold `low` and `high` (inclusive) for its number or numbers, `url` for its text.
"""

import difflib
import re
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, field, fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from seal.core.errors import ParamError

T = TypeVar("T")
MOST = 2**31  # no setting is larger, so that infinity is none, and sizes fit
URL = {"url": True}  # metadata of a text that is the http(s) URL of a server; of a field with a default also empty


def ranged(default: Any, low: float, high: float = float("inf")) -> Any:
    """A dataclass field whose number (or whose every number) lies in [low, high]."""
    metadata = {"low": low, "high": high}
    if isinstance(default, (dict, list)):
        return field(default_factory=lambda: type(default)(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def later(default: Any, absent: Any, low: float = float("-inf"), high: float = float("inf")) -> Any:
    """A field that was added when complete entries existed: one without it means `absent`, whatever the default is."""
    return field(default=default, metadata={"low": low, "high": high, "absent": absent})


def read(kind: type[T], value: Any, path: str, complete: bool = False) -> T:
    """`value` as a `kind`. `path` is its dotted key; with `complete` no key of `kind` may be left to its default.

    One that was added later (see `later`) may: it means what it meant before it was there.
    """
    if not isinstance(value, Mapping):
        raise ParamError(path, value, f"write a mapping with some of: {', '.join(_names(kind))}")
    check_keys(value, _names(kind), path)
    hints, found = get_type_hints(kind), {}
    for item in fields(kind):
        if item.name in value:
            found[item.name] = convert(hints[item.name], value[item.name], f"{path}.{item.name}", item, complete)
        elif complete and "absent" in item.metadata:
            found[item.name] = item.metadata["absent"]
        elif complete or (item.default is MISSING and item.default_factory is MISSING):
            raise ParamError(f"{path}.{item.name}", "missing", f"add `{item.name}: {_default(item)}` under {path}")
    return kind(**found)


def check_keys(value: Mapping[str, Any], known: list[str], path: str) -> None:
    """Raise ParamError for the first key that is not `known`, with the nearest names that are."""
    for key in value:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=2, cutoff=0.5)
            remedy = f"did you mean {' or '.join(near)}?" if near else f"known keys: {', '.join(known) or 'none'}"
            raise ParamError(f"{path}.{key}" if path else str(key), value[key], f"unknown key; {remedy}")


def convert(hint: Any, value: Any, path: str, item: Field, complete: bool = False) -> Any:
    """`value` as the annotation `hint` says."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):
        remedies = []
        for option in args:
            try:
                return convert(option, value, path, item, complete)
            except ParamError as error:
                remedies.append(error.remedy)
        raise ParamError(path, value, "; or ".join(remedies))
    if is_dataclass(hint):
        return read(hint, value, path, complete)
    if origin is Literal:
        if value not in args or isinstance(value, bool):
            raise ParamError(path, value, "use one of: " + ", ".join(str(arg) or "''" for arg in args))
        return value
    if origin is tuple:
        wanted = None if args[-1] is Ellipsis else len(args)
        if not isinstance(value, (list, tuple)) or wanted not in (None, len(value)):
            raise ParamError(path, value, f"write a list of {wanted or 'any number of'} {_kind(args[0])}")
        return tuple(convert(args[0], part, f"{path}[{i}]", item) for i, part in enumerate(value))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise ParamError(path, value, "write a mapping of names to values")
        return {convert(args[0], k, path, item): convert(args[1], v, f"{path}.{k}", item) for k, v in value.items()}
    return _scalar(hint, value, path, item)


def _scalar(hint: type, value: Any, path: str, item: Field) -> Any:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        like = f", such as {default}" if (default := _default(item)) not in ("", "...") else ""
        raise ParamError(path, repr(value), f"write a value of type {hint.__name__}{like}")
    low, high = item.metadata.get("low"), min(item.metadata.get("high", MOST), MOST)
    if low is not None and hint in (int, float) and not low <= value <= high:
        raise ParamError(path, value, f"out of range: use a value from {low:.12g} to {high:.12g}")
    none = "" if item.default is MISSING else ", or '' for none"  # a server that has no default must be there
    if item.metadata.get("url") and (value or not none) and not re.fullmatch(r"https?://[^\s/?#]\S*", value):
        raise ParamError(path, value or "empty", f"give the server, such as http://localhost:8000/v1{none}")
    return value


def _kind(hint: Any) -> str:
    """What the values of a list are, for a person."""
    if get_origin(hint) is Literal:
        return f"these: {', '.join(get_args(hint))}"
    return "values" if hint is Any else "mappings" if is_dataclass(hint) else f"{hint.__name__} values"


def _names(kind: type) -> list[str]:
    return [item.name for item in fields(kind)]


def _default(item: Field) -> Any:
    if item.default_factory is not MISSING:
        return plain(item.default_factory())
    return "..." if item.default is MISSING else plain(item.default)


def plain(value: Any, short: bool = False) -> Any:
    """Dataclasses, mappings and tuples as dicts and lists, enums as their values: what a YAML file holds.

    `short` leaves out every field that was added later and holds what its absence means: what says the same, before a
    field was there and after, is then equal.
    """
    if is_dataclass(value):
        found = {item: getattr(value, item.name) for item in fields(value)}
        if short:
            found = {item: part for item, part in found.items() if item.metadata.get("absent", MISSING) != part}
        return {item.name: plain(part, short) for item, part in found.items()}
    if isinstance(value, Mapping):
        return {str(key): plain(part, short) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part, short) for part in value]
    return str(value) if isinstance(value, str) else value
