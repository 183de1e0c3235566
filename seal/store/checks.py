"""Cheap checks of a table, in every write and every read: columns and types, nulls, keys, vocabularies.

What costs more, and what spans tables, is in seal.store.contracts.
"""

from collections.abc import Iterable, Mapping
from typing import get_args

import pyarrow as pa
import pyarrow.compute as pc

from seal.core.errors import ContractError
from seal.core.labels import Label
from seal.core.types import STOP_REASONS, Mode, Phase, Split
from seal.store.schemas import TABLES

_MODES = get_args(Mode)
# (table or "*", column) -> the words it may hold
VOCABULARY: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("*", "phase"): get_args(Phase),
    ("*", "split"): get_args(Split),
    ("trajectories", "stop_reason"): STOP_REASONS,
    ("trajectories", "interface_mode"): _MODES,
    ("evaluations", "mode"): _MODES,
    ("diagnoses", "label"): tuple(str(label) for label in Label),
    ("profile", "label"): tuple(str(label) for label in Label),
    ("profile", "trend"): ("up", "down", "flat"),
    ("interface_items", "place"): ("docs", "feedback", "hint"),
    ("interface_items", "status"): ("active", "retired", "rolled_back"),
    ("changes", "action"): ("add", "keep", "retire", "rollback", "refuse"),
    ("decisions", "decision"): ("keep", "rollback", "untested"),
}
_RERUN = "the stage that wrote it is wrong, or the file was edited: run the stage again"


def vocabulary(name: str) -> dict[str, tuple[str, ...]]:
    """Column -> allowed words, of one table."""
    names = TABLES[name].names
    return {column: words for (of, column), words in VOCABULARY.items() if of in ("*", name) and column in names}


def check(table: pa.Table, name: str) -> None:
    """Raise ContractError for the first thing that is wrong with a table of the kind `name`."""
    kind = TABLES[name]
    if tuple(table.column_names) != kind.names:
        raise ContractError(f"table {name}", column_fault(kind.names, table.column_names), _RERUN)
    for field in kind.schema:
        if table.schema.field(field.name).type != field.type:
            found = table.schema.field(field.name).type
            raise ContractError(f"table {name}, column {field.name}", f"{found}, not {field.type}", _RERUN)
        if not field.nullable and (n := table[field.name].null_count):
            raise ContractError(f"table {name}, column {field.name}", f"{n} of {table.num_rows} rows are null", _RERUN)
    for column, words in vocabulary(name).items():
        known = pc.is_in(table[column], value_set=pa.array(words, pa.string()))
        if not pc.all(known, min_count=0).as_py():
            found = sorted(set(table[column].filter(pc.invert(known)).to_pylist()))[:5]
            remedy = f"known: {', '.join(words)}; {_RERUN}"
            raise ContractError(f"table {name}, column {column}", ", ".join(map(repr, found)), remedy)
    if twice := _repeated(table, kind.key):
        raise ContractError(f"table {name}, key {', '.join(kind.key)}", f"more than one row for {twice}", _RERUN)


def column_fault(wanted: Iterable[str], found: Iterable[str]) -> str:
    """How the columns `found` differ from those that are `wanted`."""
    missing, more = sorted({*wanted} - {*found}), sorted({*found} - {*wanted})
    parts = [f"without {', '.join(missing)}" if missing else "", f"unknown {', '.join(more)}" if more else ""]
    return "; ".join(filter(None, parts)) or "columns in another order"


def _repeated(table: pa.Table, key: tuple[str, ...]) -> str:
    """A key that occurs twice, as text."""
    counts = table.select(key).group_by(list(key), use_threads=False).aggregate([([], "count_all")])
    if counts.num_rows == table.num_rows:
        return ""
    row = counts.filter(pc.greater(counts["count_all"], 1)).slice(0, 1).to_pylist()[0]
    return ", ".join(f"{name}={row[name]}" for name in key)
