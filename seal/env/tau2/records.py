"""A database that costs nothing to open: records are shared between sessions until one is asked for by its key.

The package's tools change records only after looking them up by key, and only read when they walk over all of them
(a test pins this to the installed version). So a look-up hands out a copy of the session's own, and a walk the shared
records.
"""

import json
import pickle
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from seal.core.types import Json


class Records(dict):
    """One table `{key: record}`, holding `shared` records until they are looked up; `own` are this session's."""

    def __init__(self, shared: Mapping[str, Any]):
        super().__init__(shared)
        self.own: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        record = super().__getitem__(key)
        if key in self.own:
            return record
        record = pickle.loads(pickle.dumps(record, pickle.HIGHEST_PROTOCOL))
        self[key] = record
        return record

    def __setitem__(self, key: str, record: Any) -> None:
        self.own.add(key)
        super().__setitem__(key, record)

    def __delitem__(self, key: str) -> None:
        self.own.add(key)
        super().__delitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self else default  # noqa: SIM401


def opened(database: Any) -> Any:
    """A session's own view of a parsed database (a pydantic model): its tables are lent, all else is copied."""
    lent = {name: value for name, value in database if isinstance(value, dict)}
    rest = {name: value for name, value in database if name not in lent}
    copied = pickle.loads(pickle.dumps(rest, pickle.HIGHEST_PROTOCOL))
    return type(database).model_construct(**{name: Records(value) for name, value in lent.items()}, **copied)


def changes(database: Any, start: Any, fields: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """`(place, text)` of every record or field of `database` that differs from `start`, by name.

    Two databases opened from one start are equal by the official hash (JSON of everything, keys sorted) exactly where
    their changes are equal. The text is that JSON, "" for a record that is gone. `fields`: see `fields_of`.
    """
    tables = dict(start)
    for name, value in database:
        if not isinstance(value, Records):
            if (after := as_json(value)) != fields[name]:
                yield name, after
            continue
        before = tables[name]
        for key in sorted(value.own):
            after = as_json(dict.__getitem__(value, key)) if key in value else ""
            if after != (as_json(before[key]) if key in before else ""):
                yield f"{name}/{key}", after


def fields_of(database: Any) -> dict[str, str]:
    """`{name: JSON}` of what is no table."""
    return {name: as_json(value) for name, value in database if not isinstance(value, dict)}


def as_json(value: Any) -> str:
    """The text that the official hash takes of a value."""
    return json.dumps(_dumped(value), sort_keys=True, default=str)


def _dumped(value: Any) -> Json:
    if isinstance(value, BaseModel):
        return value.model_dump()
    return [_dumped(item) for item in value] if isinstance(value, list) else value
