"""What all settings share: immutable pydantic models, and one clear ParamError for the first thing that is wrong."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from annotated_types import Ge, Le, MaxLen
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from seal.core.errors import ParamError

S = TypeVar("S", bound="Settings")
MOST = 2**31  # no setting is larger, so that infinity is none, and sizes fit
TYPES = {"int_type": "int", "float_type": "float", "bool_type": "bool", "string_type": "str"}


class Settings(BaseModel):
    """A group of settings. Immutable and strict: no unknown keys, and a text or a bool is no number.

    The docstring below each field says what it is; editors show it from the JSON Schema.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    @model_validator(mode="before")
    @classmethod
    def _lists_as_tuples(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        return {key: tuple(part) if isinstance(part, list) else part for key, part in value.items()}


@dataclass(frozen=True, slots=True)
class Absent:
    """Marks a field that was added when complete entries existed: one without it means `value`, not the default."""

    value: Any


def ranged(default: Any, low: float, high: float = MOST) -> Any:
    """A field whose number lies in [low, high]."""
    return Field(default, ge=low, le=high)


def read(kind: type[S], value: Any, path: str, complete: bool = False) -> S:
    """`value` as a `kind`. `path` is its dotted key; with `complete` no key of `kind` may be left to its default.

    One that was added later (see `Absent`) may: it means what it meant before it was there. Raises ParamError.
    """
    try:
        found = kind.model_validate(value)
    except ValidationError as error:
        raise _fault(error.errors(include_url=False), kind, value, path) from None
    return _completed(found, path) if complete else found


def _completed(entry: S, path: str) -> S:
    """`entry` with what its absent keys mean. Raises ParamError for one that has no such meaning."""
    change = {}
    for name, value in entry:
        field = type(entry).model_fields[name]
        if name not in entry.model_fields_set:
            absent = [mark.value for mark in field.metadata if isinstance(mark, Absent)]
            if not absent:
                raise ParamError(f"{path}.{name}", "missing", _add(field, f"{path}.{name}"))
            change[name] = absent[0]
        elif isinstance(value, Settings):
            change[name] = _completed(value, f"{path}.{name}")
    return entry.model_copy(update=change)


def check_keys(value: Mapping[str, Any], known: list[str], path: str) -> None:
    """Raise ParamError for the first key that is not `known`, with the nearest names that are."""
    for key in value:
        if key not in known:
            raise ParamError(f"{path}.{key}" if path else str(key), value[key], _unknown(key, known))


def plain(value: Any, short: bool = False) -> Any:
    """Settings, mappings and tuples as dicts and lists, enums as their values: what a YAML file holds.

    `short` leaves out every field that was added later and holds what its absence means: what says the same, before a
    field was there and after, is then equal.
    """
    if isinstance(value, Settings):
        fields = type(value).model_fields
        return {k: plain(part, short) for k, part in value if not (short and Absent(part) in fields[k].metadata)}
    if isinstance(value, Mapping):
        return {str(key): plain(part, short) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part, short) for part in value]
    return str(value) if isinstance(value, str) else value


def _fault(errors: Sequence[ErrorDetails], kind: type[Settings], value: Any, path: str) -> ParamError:
    """The first thing that is wrong; an unknown key before all else, since another may be missing because of it."""
    error = next((e for e in errors if e["type"] in ("extra_forbidden", "invalid_key")), errors[0])
    hint, owner, field, place = kind, kind, None, ()
    for key in error["loc"]:
        if _is_union(hint) or key == "[key]":  # what follows is pydantic's name of an option, or of the fault
            break
        if get_origin(hint) is None and issubclass(hint, Settings):
            owner, field = hint, hint.model_fields.get(key)
            hint = field and field.annotation
        else:  # the items of a list, or the values of a mapping
            hint = get_args(hint)[-1 if get_origin(hint) is dict else 0]
        place, path = (*place, key), f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}"
    found = "missing" if error["type"] == "missing" else reduce(getitem, place, value)
    if _is_union(hint):
        options = [e for e in errors if e["loc"][: len(place)] == place]
        return ParamError(path, found, "; or ".join(_remedy(e, hint, owner, field, path) for e in options))
    if error["type"] == "string_pattern_mismatch":
        found = found or "empty"
    return ParamError(path, repr(found) if error["type"] in TYPES else found, _remedy(error, hint, owner, field, path))


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)


def _remedy(error: ErrorDetails, hint: Any, owner: type[Settings], field: FieldInfo | None, path: str) -> str:
    """What to write instead. `hint`: what is expected at `path`, which is or lies within `field` of `owner`."""
    match error["type"]:
        case "extra_forbidden" | "invalid_key":
            return _unknown(error["loc"][-1], list(owner.model_fields))
        case "missing":
            return _add(field, path)
        case "model_type":
            return f"write a mapping with some of: {', '.join(hint.model_fields)}"
        case "dict_type":
            return "write a mapping of names to values"
        case "literal_error":
            choices = re.sub(r"'([^']+)'", r"\1", error["ctx"]["expected"])
            return f"use one of: {choices.replace(' or ', ', ')}"
        case "tuple_type" | "too_short" | "too_long":
            length = [mark.max_length for mark in field.metadata if isinstance(mark, MaxLen)]
            return f"write a list of {length[0] if length else 'any number of'} {_items(hint)}"
        case "greater_than_equal" | "less_than_equal" | "finite_number":
            marks = (*field.metadata, *get_args(hint)[1:])
            low = next(mark.ge for mark in marks if isinstance(mark, Ge))
            high = next(mark.le for mark in marks if isinstance(mark, Le))
            return f"out of range: use a value from {low:.12g} to {high:.12g}"
        case "string_pattern_mismatch":
            none = "" if field.is_required() else ", or '' for none"
            return f"give the server, such as http://localhost:8000/v1{none}"
        case wanted if wanted in TYPES:
            like = f", such as {default}" if (default := _default(field)) not in ("", "...") else ""
            return f"write a value of type {TYPES[wanted]}{like}"
    return error["msg"]  # of a validator of ours


def _items(hint: Any) -> str:
    """What the items of a list are, for a person. `hint`: of the list, or a union with it."""
    item = next(get_args(option)[0] for option in (hint, *get_args(hint)) if get_origin(option) is tuple)
    if get_origin(item) is Literal:
        return f"these: {', '.join(get_args(item))}"
    if item is Any:
        return "values"
    kind = get_args(item)[0] if get_origin(item) is Annotated else item
    return "mappings" if issubclass(kind, Settings) else f"{kind.__name__} values"


def _unknown(key: Any, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(str(key), known, n=2, cutoff=0.5)
    nearest = f"did you mean {' or '.join(near)}?" if near else f"known keys: {', '.join(known) or 'none'}"
    return f"unknown key; {nearest}"


def _add(field: FieldInfo, path: str) -> str:
    place, _, name = path.rpartition(".")
    return f"add `{name}: {_default(field)}` under {place}"


def _default(field: FieldInfo) -> Any:
    return "..." if field.is_required() else plain(field.get_default(call_default_factory=True))
