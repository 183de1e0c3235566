"""What was imitated and may be again: training rows of evolved rollouts, over the steps of a round and down its line.

An evolved rollout is off-policy under the bare prompt anyway, so it does not age as the policy's own would; and a fact
that a cue stated is met too seldom in one step to be learned from it. The rows are an artifact of the round, so that
the next one starts with them.
"""

import random
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from seal.core.judged import Judged
from seal.store.tables import read_table
from seal.train.batch import Batch, TrainRow

MAX_ROWS = 4096  # the newest are kept


def rows_to_replay(judged: Sequence[Judged], batch: Batch, bare_too: bool = False) -> list[TrainRow]:
    """Rows of the batch that come from evolved rollouts (with `bare_too`, from any) and hold something to imitate."""
    wanted = {j.rollout.rollout_id for j in judged if bare_too or not j.bare}
    return [row for row in batch.rows if row.rollout_id in wanted and max(row.advantages) > 0]


def sampled(rows: Sequence[TrainRow], n: int, seed: int, step: int) -> list[TrainRow]:
    """At most `n` of the rows, each once, by chance that is a function of seed and step."""
    return random.Random(f"{seed}/{step}").sample(list(rows), min(n, len(rows)))


def rows_of_replay(rows: Sequence[TrainRow], round_id: str) -> list[dict[str, Any]]:
    """Rows of the `replay` table, oldest first."""
    return [{"round": round_id, "place": place, **asdict(row)} for place, row in enumerate(rows)]


def replay_of(path: Path) -> list[TrainRow]:
    """What `rows_of_replay` wrote to a Parquet file."""
    found = read_table(path, "replay").drop_columns(["round", "place"]).to_pylist()
    return [TrainRow(row.pop("rollout_id"), **{name: tuple(values) for name, values in row.items()}) for row in found]
