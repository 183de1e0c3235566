"""What trained policies do elsewhere (seal.experiment.transfer): as a text table, and as the page shows it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from seal.experiment.results import rows_like
from seal.report.experiments import estimate
from seal.report.tables import NONE, text_table

TABLE = "transfer.parquet"
HEAD = ("tasks of", "arm", "seeds", "rounds", "start", "strict", "95%", "gain", "95%", "margin", "95%")
LEFT = (0, 1)
LEGEND = "strict: of policies trained at home, bare docs; gain: minus the start there; margin: minus the first arm"
ESTIMATES = ("start", "strict", "gain", "margin")
SCHEMA = pa.schema(
    [("to", pa.string()), ("arm", pa.string()), ("seeds", pa.int64()), ("rounds", pa.int64())]
    + [(f"{name}{end}", pa.float64()) for name in ESTIMATES for end in ("", "_low", "_high")]
)


def transfer_table(rows: Sequence[Mapping[str, Any]], home: str) -> str:
    """Rows of seal.experiment.transfer.summarise_transfer as text. `home`: the environment that was trained in."""
    return text_table(HEAD, transfer_rows(rows, f"{home} (home)"), LEFT) + "\n" + LEGEND


def transfer_rows(rows: Sequence[Mapping[str, Any]], home: str = "home") -> list[tuple[str, ...]]:
    """The cells under HEAD. `home`: what the environment that was trained in is called."""
    arms, cells = [row["arm"] for row in rows], []
    for row in rows:
        margin = estimate(row, "margin", "+") if row["arm"] != arms[0] else (NONE, "")
        scores = estimate(row, "start")[0], *estimate(row, "strict"), *estimate(row, "gain", "+"), *margin
        cells.append((row["to"] or home, row["arm"], str(row["seeds"]), str(row["rounds"]), *scores))
    return cells


def load_transfers(root: Path) -> list[tuple[str, list[dict[str, Any]]]]:
    """Every folder with a transfer table under `root`/results, by name, and its rows. Raises ArtifactError."""
    folders = sorted(path.parent for path in (root / "results").rglob(TABLE))
    return [(folder.relative_to(root / "results").as_posix(), read_transfer(folder)) for folder in folders]


def read_transfer(folder: Path) -> list[dict[str, Any]]:
    """The rows of a folder's transfer table; none where it has none. Raises ArtifactError for a damaged one."""
    path = folder / TABLE
    return rows_like(path, SCHEMA) if path.exists() else []
