"""What is reported of a train step: its row of the curve."""

from collections.abc import Sequence
from typing import Any

from seal.core.judged import Judged
from seal.train.batch import Batch
from seal.train.optimise import METRICS, StepMetrics

_OF_PLAY = ("step", "success_bare", "success_evolved", "rollouts", "tokens")
_OF_BATCH = ("mixed_groups", "all_pass_groups", "all_fail_groups", "share_masked", "dropped", "replayed", "excluded")
CURVE = [*_OF_PLAY, *METRICS, *_OF_BATCH]


def curve_row(step: int, judged: Sequence[Judged], batch: Batch, replayed: int, metrics: StepMetrics) -> dict[str, Any]:
    """Keys CURVE; None where a step has no such figure. `replayed`: rows of earlier steps in it."""

    def rate(of: list[Judged]) -> float | None:
        return sum(j.success for j in of) / len(of) if of else None

    row = {
        "step": step,
        "success_bare": rate([j for j in judged if j.bare and j.usable]),
        "success_evolved": rate([j for j in judged if not j.bare and j.usable]),
        "rollouts": len(judged),
        "tokens": sum(sum(j.rollout.tokens.loss_mask) for j in judged),
        "mixed_groups": batch.groups.mixed,
        "all_pass_groups": batch.groups.all_pass,
        "all_fail_groups": batch.groups.all_fail,
        "share_masked": batch.share_masked,
        "dropped": batch.dropped,
        "replayed": replayed,
        "excluded": batch.excluded,
        **metrics,
    }
    return {key: row[key] for key in CURVE}
