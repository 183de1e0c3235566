"""The one way Parquet is written, such that the same rows are the same bytes, and the one way it is read.

Bytes depend on the order of rows, on chunks, on row groups and on the version of pyarrow: rows are sorted, chunks
combined, all options fixed, and the version is pinned.
"""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from seal.core.errors import REMAKE, ArtifactError
from seal.store.files import atomic_file

ROW_GROUP = 122_880  # rows; DuckDB's own size, one thread reads one group
_OPTIONS = {"compression": "zstd", "compression_level": 3, "version": "2.6", "data_page_version": "1.0"}
_OPTIONS |= dict.fromkeys(("use_dictionary", "write_statistics", "store_schema"), True)


def write_parquet(path: Path, table: pa.Table, sort: Sequence[str] = ()) -> None:
    """Write a table sorted by the columns `sort` (stable). The file appears whole or not at all."""
    if sort:
        table = table.sort_by([(name, "ascending") for name in sort])
    with atomic_file(path) as partial:
        pq.write_table(table.combine_chunks(), partial, row_group_size=ROW_GROUP, **_OPTIONS)


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Raises ArtifactError when the file is missing or is no whole Parquet file."""
    try:
        with pq.ParquetFile(path) as file:
            return file.read(columns=list(columns) if columns is not None else None)
    except FileNotFoundError:
        raise ArtifactError("table", path, "run the stage that writes it, or `dvc checkout`") from None
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise ArtifactError("table", f"{path}: {reason}", REMAKE) from None
