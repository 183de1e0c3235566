"""When a line of rounds has nothing left to gain. Reads the dev score alone; the test score is for reports."""

from collections.abc import Mapping, Sequence
from typing import Any


def converged(scores: Sequence[float], patience: int, min_gain: float = 0.0) -> str:
    """Why a line may stop, "" when it should go on. `scores`: start first, one a round.

    It stops when the best of the last `patience` rounds is not more than `min_gain` above the best before them.
    """
    if len(scores) <= patience:
        return ""
    before, last = max(scores[:-patience]), max(scores[-patience:])
    if last > before + min_gain:
        return ""
    return f"the dev score has not gained for {patience} rounds (best before {before:.3f}, since {last:.3f})"


def dev_scores(line: Sequence[Mapping[str, Any]]) -> list[float]:
    """Of the metrics of a line of rounds, the dev scores that were measured (some older ones have one of nothing)."""
    return [dev["mean"] for metrics in line if (dev := metrics.get("dev")) and dev.get("n", 1)]
