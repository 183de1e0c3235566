"""When a line of rounds has nothing left to gain. Reads the dev score alone; the test score is for reports."""

from collections.abc import Sequence


def converged(dev_scores: Sequence[float], patience: int, min_gain: float = 0.0) -> str:
    """Why a line may stop, "" when it should go on. `dev_scores`: start first, one a round.

    It stops when the best of the last `patience` rounds is not more than `min_gain` above the best before them.
    """
    if len(dev_scores) <= patience:
        return ""
    before, last = max(dev_scores[:-patience]), max(dev_scores[-patience:])
    if last > before + min_gain:
        return ""
    return f"the dev score has not gained for {patience} rounds (best before {before:.3f}, since {last:.3f})"
