"""Tables as answers of the command line: plain text, CSV, JSON or Parquet, printed or written to a file."""

import argparse
import csv
import io
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seal.commands.places import file_place
from seal.core.errors import ParamError

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS = ("table", "csv", "json", "parquet")
WIDTH = 60  # characters of a cell in the plain table


def add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=FORMATS, help="default: that of the file's name, else table")
    parser.add_argument("--limit", type=int, default=50, help="rows of a plain table (0: all; default: 50)")


def form_of(form: str | None, output: Path | None) -> str:
    """The format asked for, or the one that the file is named for."""
    named = output.suffix.removeprefix(".") if output else ""
    return form or (named if named in FORMATS else "table")


def check_format(form: str, output: Path | None, limit: int) -> Path | None:
    """The file to write, before any work is done. Raises ParamError, MachineError."""
    if form == "parquet" and not output:
        raise ParamError("--format parquet", "without --output", "say where: --output FILE")
    if limit < 0:
        raise ParamError("--limit", limit, "a number of rows, 0 for all")
    return file_place("--output", output)


def write_answer(answer: "pa.Table", form: str, output: Path | None, limit: int) -> None:
    """`limit`: rows of a plain table that is printed, 0 for all; a file gets all."""
    if form == "parquet":
        from seal.store.parquet import write_parquet

        write_parquet(output, answer)
    elif output:
        from seal.store.files import atomic_file

        with atomic_file(output) as partial:
            partial.write_text(_text(answer, form, 0), encoding="utf-8")
    else:
        sys.stdout.write(_text(answer, form, limit))


def _text(answer: "pa.Table", form: str, limit: int) -> str:
    if form == "csv":
        return _csv(answer)
    if form == "json":
        if twice := [name for name, n in Counter(answer.column_names).items() if n > 1]:
            raise ParamError("--format json", f"two columns {', '.join(twice)}", "name them apart, as in a AS b")
        rows = [dict(zip(answer.column_names, row, strict=True)) for row in _rows(answer)]
        return json.dumps(rows, indent=1, ensure_ascii=False, default=str) + "\n"
    return _plain(answer, limit)


def _rows(answer: "pa.Table") -> list[tuple[Any, ...]]:
    """By position, because a query can name two columns alike."""
    return list(zip(*(column.to_pylist() for column in answer.columns), strict=True))


def _csv(answer: "pa.Table") -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(answer.column_names)
    writer.writerows([_flat(value) for value in row] for row in _rows(answer))
    return text.getvalue()


def _plain(answer: "pa.Table", limit: int) -> str:
    import pyarrow.types as kinds

    from seal.report.tables import text_table

    if answer.column_names == ["explain_key", "explain_value"]:
        return "\n".join(answer["explain_value"].to_pylist()) + "\n"
    shown = answer.slice(0, limit) if limit else answer
    rows = [tuple(map(_cell, row)) for row in _rows(shown)]
    left = [i for i, field in enumerate(answer.schema) if not _is_number(kinds, field.type)]
    more = f"the first {shown.num_rows:,} rows; all: --limit 0"
    said = more if answer.num_rows > shown.num_rows else f"{answer.num_rows:,} row{'s' * (answer.num_rows != 1)}"
    return f"{text_table(answer.column_names, rows, left)}\n({said})\n"


def _is_number(kinds: Any, kind: "pa.DataType") -> bool:
    return kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_decimal(kind)


def _flat(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, (list, dict)) else value


def printable(text: str) -> str:
    """One line that cannot steer a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".")
    text = printable(str(_flat(value)))
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
