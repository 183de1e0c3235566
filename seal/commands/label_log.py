"""`seal diagnose --input FILE`: a row a label of every user turn; what is no conversation is told on stderr."""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from seal.commands.output import check_format, form_of, printable, write_answer
from seal.core.errors import ArtifactError, ParamError

MOST_LINES = 20  # malformed lines that are named one by one


def label_file(path: Path, form: str | None = None, output: Path | None = None, limit: int = 50) -> int:
    """Write the labels, and a summary: beside a table on stdout, else on stderr.

    Columns: `line` (from 1; of a Parquet file the row), `turn`, `rank` (0: the primary label), `label`, `confidence`,
    `detail`, `tool`, `parameter`, `step`, `evidence` (JSON). Raises ArtifactError for a file without a turn to label.
    """
    import pyarrow as pa

    from seal.diagnose.log_file import JSONL_OF

    form = form_of(form, output)
    if output and output.exists() and path.exists() and output.samefile(path):
        raise ParamError("--output", output, "that is the log itself: name another file")
    output = check_format(form, output, limit)
    counts: Counter[str] = Counter()
    rows, skipped = _labels(path, counts)
    turns = sum(counts.values())
    if not turns:
        remedy = f'give one conversation a line or row, {{"messages": [...], "tools": [...]}}; of an array: {JSONL_OF}'
        raise ArtifactError("conversation log", f"{path}: no turn to label, {skipped:,} lines skipped", remedy)
    kinds = {"line": pa.int64(), "turn": pa.int32(), "rank": pa.int32(), "step": pa.int32(), "confidence": pa.float64()}
    fields = [pa.field(name, kinds.get(name, pa.string())) for name in rows]
    write_answer(pa.table(rows, schema=pa.schema(fields)), form, output, limit)
    beside = sys.stdout if form == "table" and not output else sys.stderr
    print(f"\n{turns:,} turns, {skipped:,} lines skipped", file=beside)
    for label, n in counts.most_common():
        print(f"  {label:<20} {n:>6}  {n / turns:6.1%}", file=beside)
    return 0


def _labels(path: Path, counts: Counter[str]) -> tuple[dict[str, list[Any]], int]:
    """(columns of the answer, lines skipped); counts primary labels."""
    from seal.diagnose.log_file import Malformed, diagnose_file
    from seal.store.rows import escape_surrogates, to_json

    names = "line", "turn", "rank", "label", "confidence", "detail", "tool", "parameter", "step", "evidence"
    columns: dict[str, list[Any]] = {name: [] for name in names}
    skipped = faults = 0
    for number, found in diagnose_file(path):
        if isinstance(found, Malformed):
            skipped, faults = skipped + found.n, faults + 1
            if faults <= MOST_LINES:
                where = f"line {number}" if found.n == 1 else f"lines {number} to {number + found.n - 1}"
                print(f"{where}: skipped, {printable(found.reason)}", file=sys.stderr)
            continue
        ranks: Counter[int] = Counter()
        for d in found:
            counts.update([d.label] if d.primary else ())
            values = (number, d.turn, ranks[d.turn], d.label, d.confidence, d.detail, d.tool, d.parameter, d.step)
            ranks[d.turn] += 1
            for column, value in zip(columns.values(), (*values, to_json(dict(d.evidence))), strict=True):
                column.append(escape_surrogates(value))
    if faults > MOST_LINES:
        print(f"and {faults - MOST_LINES:,} more", file=sys.stderr)
    return columns, skipped
