"""The progress bar of the stages that play or train."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from seal.interface.state import InterfaceState
from seal.pipeline.stage import Stage
from seal.rollout.play_cache import PlayCache

if TYPE_CHECKING:
    from seal.evaluate.suite import Evaluation


def evaluated(
    stage: Stage, policy: Any, interface: InterfaceState, priority: Sequence[str], log: PlayCache
) -> "Evaluation":
    """Play the held-out tasks of a round or start, with a bar."""
    from seal.evaluate.suite import evaluate_policy, plan_evaluation

    params, mode = stage.entry.evaluate, stage.entry.collect.mode if stage.parent else "off"
    shown = mode if interface.active else "off"
    total = len(plan_evaluation(stage.env.tasks(), params, stage.id, stage.seed, shown))
    how = {"mode": shown, "log": log}
    with progress(f"evaluate@{stage.id}", total) as played:
        return evaluate_policy(stage.env, policy, interface, params, priority, stage.id, stage.seed, played, **how)


@contextmanager
def progress(name: str, total: int | None, unit: str = "rollout") -> Iterator[Callable[[int], None]]:
    """A bar on stderr; the yielded function moves it."""
    from tqdm import tqdm

    width = 88  # DVC runs stages without a terminal of their own, so the width cannot be asked for
    with tqdm(total=total, desc=f"{name:<22}", unit=unit, ncols=width, mininterval=0.5, file=sys.stderr) as bar:
        yield lambda n=1: bar.update(n)
