"""What an optimiser of a round needs to know, and what it reports. Light: no torch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from seal.train.batch import Batch

StepMetrics = dict[str, float | None]
CPU_ROWS = 16  # rows of one forward pass on a CPU: measured as fast as fewer, and 1.5 times as fast as 64


@dataclass(frozen=True, slots=True)
class OptimSettings:
    """`steps` counts train steps, each of `minibatches * num_iterations` updates; `rows` is the most rows of a step.

    `micro_batch`: rows whose activations are held at once (0: a whole minibatch). `temperature`: the sampler's.
    `reference`: the weights that a KL term and DPO compare with, by name (None: the policy as it came). `loss`: TRL's
    loss_type. `epsilon_high` 0: epsilon.
    """

    steps: int
    rows: int
    lr: float = 3e-4
    epsilon: float = 0.2
    beta: float = 0.0
    minibatches: int = 2
    num_iterations: int = 1
    max_grad_norm: float = 1.0
    temperature: float = 1.0
    micro_batch: int = 0
    seed: int = 0
    loss: str = "dapo"
    dpo_beta: float = 0.1
    reference: Any = None
    schedule: str = "constant"
    epsilon_high: float = 0.0

    def rate(self, update: int) -> float:
        """Share of `lr` at an update, counted from 0 over all steps."""
        if self.schedule == "constant":
            return 1.0
        updates = self.steps * self.minibatches * self.num_iterations
        rise = max(updates // 10, 1)
        return max(min((update + 1) / rise, (updates - update) / max(updates - rise, 1), 1.0), 0.0)


class Optimise(Protocol):
    """Run train steps first_step .. settings.steps - 1 on `model`, in place, and leave it in eval mode.

    `batch_of_step(step)` is asked for each step's rows when the updates of the step before are done; `after_step(step,
    metrics)` is called after the last update of each step. `restore` loads the state of an interrupted run: it is
    called once the reference of a KL term has been taken from the model as it came.
    """

    def __call__(
        self,
        model: Any,
        tokenizer: Any,
        batch_of_step: Callable[[int], Batch],
        settings: OptimSettings,
        optimizer: Any,
        after_step: Callable[[int, StepMetrics], None],
        first_step: int = 0,
        restore: Callable[[], None] | None = None,
    ) -> None: ...
