"""What an optimiser of a round needs to know, and what it reports. Light: no torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from seal.settings.train import TrainParams
from seal.train.batch import Batch

METRICS = ("loss", "kl", "clip_ratio", "entropy", "sampler_gap")
StepMetrics = dict[str, float | None]  # keys METRICS
CPU_ROWS = 16  # rows of one forward pass on a CPU: measured as fast as fewer, and 1.5 times as fast as 64


@dataclass(frozen=True, slots=True)
class UpdatePlan:
    """A round's train parameters, and what is computed for it.

    `rows` is the most rows of a step, `seed` decides what is random, `temperature` is the sampler's, `reference` the
    weights that a KL term and DPO compare with, by name (None: the policy as it came).
    """

    params: TrainParams
    rows: int
    seed: int = 0
    temperature: float = 1.0
    reference: Mapping[str, Any] | None = None

    @property
    def updates_per_step(self) -> int:
        return self.params.minibatches * self.params.num_iterations

    def rate(self, update: int) -> float:
        """Share of `lr` at an update, counted from 0 over all steps."""
        from seal.policy.optim import rise_and_fall

        updates = self.params.steps * self.updates_per_step
        return 1.0 if self.params.schedule == "constant" else rise_and_fall(update, updates, updates // 10)


@dataclass(frozen=True, slots=True)
class Steps:
    """The train steps from `first` on, as an optimiser meets them.

    `batch_of(step)` is asked for each step's rows when the updates of the step before are done; `finished(step,
    metrics)` is called after the last update of each step. `restore` loads the state of an interrupted run: it is
    called once the reference of a KL term has been taken from the model as it came.
    """

    batch_of: Callable[[int], Batch]
    finished: Callable[[int, StepMetrics], None]
    first: int = 0
    restore: Callable[[], None] = lambda: None


class Optimise(Protocol):
    """Run the steps up to plan.params.steps - 1 on `policy.model`, in place, and leave it in eval mode."""

    def __call__(self, policy: Any, plan: UpdatePlan, steps: Steps, optimizer: Any) -> None: ...
