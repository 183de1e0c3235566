"""Files of conversations, JSONL or Parquet, one a line or row; what is none is told by its number and passed over.

A file that is one JSON value, an array of conversations or one over several lines, is read too, up to MAX_LINE.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from seal.core.errors import ArtifactError
from seal.core.types import Diagnosis, Json
from seal.diagnose.messages import conversation
from seal.diagnose.without_gold import diagnose_log

MAX_LINE = 64 * 2**20  # bytes
_COLUMNS = ("messages", "tools", "functions")
_BATCH = 500  # rows of a Parquet file at a time
JSONL_OF = "jq -c '.[]' FILE > FILE.jsonl"  # of a JSON array
_REMEDY = "give JSONL or Parquet, one conversation a line or row"


@dataclass(frozen=True, slots=True)
class Malformed:
    """Lines or rows that are no conversation: the number of the first (from 1), why, and how many."""

    line: int
    reason: str
    n: int = 1


def diagnose_file(path: Path) -> Iterator[tuple[int, list[Diagnosis] | Malformed]]:
    """(number from 1, its labels or what is wrong with it), in the order of the file; empty lines are passed over.

    Raises ArtifactError for a file that cannot be read, or is neither JSONL nor Parquet.
    """
    for number, record in records(path):
        try:
            found = record if isinstance(record, Malformed) else diagnose_log(conversation(record))
        except (ValueError, RecursionError) as error:
            found = Malformed(number, str(error)[:200] or type(error).__name__)
        yield number, found


def records(path: Path) -> Iterator[tuple[int, Json | Malformed]]:
    """(number from 1, what the line or row holds, or what is wrong with it). Raises ArtifactError."""
    try:
        with path.open("rb") as handle:
            head = handle.read(4096)
            if head[:4] == b"PAR1" or path.suffix == ".parquet":
                yield from parquet_records(path)
                return
            if head[:2] == b"\x1f\x8b" or b"\0" in head:
                kind = "gzip: unpack it first" if head[:2] == b"\x1f\x8b" else "binary, or not UTF-8"
                raise ArtifactError("conversation log", f"{path}: {kind}", _REMEDY)
            handle.seek(0)
            if (found := whole(path, handle)) is not None:
                yield from enumerate(found, 1)
                return
            handle.seek(0)
            yield from line_records(lines(handle))
    except OSError as error:
        raise ArtifactError("conversation log", f"{path}: {error.strerror or error}", _REMEDY) from None


def lines(handle: BinaryIO, most: int = MAX_LINE) -> Iterator[bytes | None]:
    """Each line; None for one of more than `most` bytes, which is never held as a whole."""
    while piece := handle.readline(most + 1):
        if len(piece) <= most or piece.endswith(b"\n"):
            yield piece
            continue
        while piece and not piece.endswith(b"\n"):
            piece = handle.readline(most)
        yield None


def whole(path: Path, handle: BinaryIO) -> list[Json] | None:
    """The conversations of a file that is one JSON value; None for JSONL, however broken. Raises ArtifactError for an
    array of conversations that is too large to be read at once."""
    first = next((line for line in lines(handle) if line is None or line.strip()), b"") or b""
    try:
        value = json.loads(first.decode("utf-8-sig"))
        return value if _conversations(value) and not handle.read(1 << 16).strip() else None
    except (ValueError, RecursionError):
        if (begins := first.lstrip(b"\xef\xbb\xbf \t"))[:1] not in (b"[", b"{"):
            return None
    handle.seek(0)
    text = handle.read(MAX_LINE + 1)
    if len(text) > MAX_LINE:
        if begins.strip() == b"[" or begins.rstrip().endswith(b","):
            size = f"one JSON array of more than {MAX_LINE // 2**20} MiB"
            raise ArtifactError("conversation log", f"{path}: {size}", f"make JSONL of it: {JSONL_OF}")
        return None
    try:
        value = json.loads(text.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None
    return value if _conversations(value) else [value]


def _conversations(value: Json) -> bool:
    """Whether it is an array of conversations, and not one of messages."""
    items = value if isinstance(value, list) else ()
    return any(isinstance(x, list) or isinstance(x, dict) and "messages" in x for x in items)


def line_records(found: Iterable[bytes | None]) -> Iterator[tuple[int, Json | Malformed]]:
    for number, line in enumerate(found, 1):
        if line is None:
            yield number, Malformed(number, f"longer than {MAX_LINE // 2**20} MiB")
        elif line.strip():
            try:
                yield number, json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except (ValueError, RecursionError) as error:
                yield number, Malformed(number, f"{type(error).__name__}: {error}"[:200])


def parquet_records(path: Path) -> Iterator[tuple[int, Json | Malformed]]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path)
    except (pa.ArrowException, ValueError) as error:
        reason, remedy = str(error).strip().splitlines()[0], "it is truncated or no Parquet; write it again"
        raise ArtifactError("conversation log", f"{path}: {reason}", remedy) from None
    names = [name for name in _COLUMNS if name in file.schema_arrow.names]
    if "messages" not in names:
        known = ", ".join(file.schema_arrow.names)[:200] or "none"
        raise ArtifactError("conversation log", f"{path}: no column messages among {known}", "name the column messages")
    done = 0
    for group in range(file.num_row_groups):
        first, done = done + 1, done + file.metadata.row_group(group).num_rows
        try:
            for batch in file.iter_batches(_BATCH, row_groups=[group], columns=names):
                for row in batch.to_pylist(maps_as_pydicts="lossy"):
                    yield first, plain(row)
                    first += 1
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = str(error).strip().splitlines()[0]
            yield first, Malformed(first, f"cannot be read: {reason}"[:200], done + 1 - first)


def plain(value: Json) -> Json:
    """A Parquet value as JSON. A struct has every field that any row has, so a null one is one that is not there."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
