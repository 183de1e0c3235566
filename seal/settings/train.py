"""How a round updates the policy. docs/training.md says why each part is there, and what it is worth."""

from typing import Annotated, Any, Literal

from annotated_types import Ge, Le
from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from seal.core.labels import DEFAULT_UTILITY
from seal.settings.typed import MOST, Absent, Settings, ranged


def _withdrawn(value: Any) -> Any:
    if value:
        raise PydanticCustomError("withdrawn", "remove it: only 0, which is off, is left of this setting")
    return value


Withdrawn = Annotated[float, BeforeValidator(_withdrawn), Absent(0.0)]  # complete entries hold its 0


class TrainParams(Settings):
    """The policy's update. The order of the fields is that of complete entries in params.yaml."""

    # What is imitated or reinforced, under which prompt, and how much of it
    algorithm: Literal["grpo", "sft", "dpo", "none"] = "grpo"
    "grpo; sft: all successes are imitated; dpo: pairs of a task that differ at the diagnosed turn; none: no update."
    condition: Literal["within_group", "stripped", "as_collected"] = "within_group"
    """Under which prompt an evolved rollout trains: the one that it saw (as_collected), or the bare one, without the
    cues' text (within_group where others of its group are bare, stripped where all are evolved)."""
    steps: int = ranged(10, 0)
    "Train steps of a round; the first trains on the collected rollouts, each later one on fresh ones."
    lr: float = ranged(3e-4, 0.0, 1.0)
    "Learning rate; `schedule` says how it moves over the round."
    weights: Literal["turn", "trajectory", "none"] = "turn"
    "What a diagnosis weight is of: each user turn, a whole rollout (as in the paper), or there is none."
    drop_negative: bool | Literal["all"] = True
    "Drop negative advantages of evolved rollouts (true), of none (false), or of every rollout (all)."

    # The update itself
    epsilon: float = ranged(0.2, 0.0, 1.0)
    "The ratio to the sampler's policy is clipped below 1 - `epsilon`; cispo does not read it."
    beta: float = ranged(0.0, 0.0)
    "Strength of grpo's KL term to the `reference` (0: there is none)."
    minibatches: int = ranged(2, 1)
    "Parts into which a step's rows are divided, one update each; at most the rollouts of a step."
    num_iterations: int = ranged(1, 1)
    "How often each minibatch is used."
    micro_batch: int = ranged(0, 0)
    "Rows whose activations are held at once (0: a whole minibatch)."
    max_grad_norm: float = ranged(1.0, 0.0)
    "The gradient's norm is cut down to this."

    # Diagnosis weights, and the closed loop that moves them
    utility: dict[str, Annotated[float, Ge(0.0), Le(10.0)]] = {str(k): v for k, v in DEFAULT_UTILITY.items()}
    "What a turn of each label weighs before the loop moves it."
    alpha: float = ranged(1.0, 0.0)
    "How much more a label weighs that is usual, unsolved and sure (0: its utility alone)."
    ema: float = ranged(0.25, 0.0, 1.0)
    "Share of a round's finding in a label's factor; the rest is the factor before."
    clip: tuple[Annotated[float, Ge(1e-3), Le(MOST)], ...] = Field((0.5, 2.0), min_length=2, max_length=2)
    "[low, high], within which a utility counts; with `weights: trajectory`, within which a weight lies."

    # Advantages, and groups without signal
    zero_variance: Literal["mask", "keep", "resample"] = "mask"
    """Groups all of one outcome are left out of the loss, kept in the token count that it is divided by, or replaced
    by groups of other tasks."""
    credit: Literal["rollout", "turn"] = "rollout"
    "An advantage compares whole rollouts, or each user turn among those that reached it in a right state."

    # The loss, and what it compares with
    loss: Annotated[Literal["dapo", "grpo", "cispo"], Absent("dapo")] = "cispo"
    "How TRL puts grpo's tokens together; cispo weighs log p by the ratio up to `epsilon_high` instead of clipping it."
    reference: Annotated[Literal["parent", "start"], Absent("parent")] = "parent"
    "Whose policy the KL term and dpo compare with: the parent's, or that of the start of the line."
    dpo_beta: Annotated[float, Absent(0.1)] = ranged(0.1, 1e-4, 100.0)
    "How far dpo may move from the `reference`: higher is nearer."

    # No longer offered
    partial_credit: Withdrawn = 0.0
    "Was the reward of turns served in a failed rollout. Only 0 is read."
    curriculum: Withdrawn = 0.0
    "Was the exponent by which fresh steps chose tasks. Only 0 is read."

    # Over the round
    schedule: Annotated[Literal["constant", "linear"], Absent("constant")] = "linear"
    "How the learning rate moves over a round's updates: linear rises in the first tenth, then falls to 0."
    epsilon_high: Annotated[float, Absent(0.0)] = ranged(1.0, 0.0, 1000.0)
    """The ratio is clipped above 1 + `epsilon_high` (0: 1 + epsilon); of cispo, the most it weighs. So what a cue made
    possible and the bare policy finds improbable is learned all the same."""

    # What is left, and what is trained again
    negative: Annotated[float, Absent(1.0)] = ranged(0.1, 0.0, 1.0)
    "What is left of a negative advantage that is not dropped."
    rehearse: Annotated[float, Absent(0.0)] = ranged(0.5, 0.0, 1.0)
    "How strongly evolved successes train under the prompt they saw, too, so that cues go on being read."
    replay: Annotated[int, Absent(0)] = ranged(160, 0)
    "How many rows of earlier steps and rounds a step imitates again."
    normalise: Annotated[bool, Absent(True)] = True
    "Whether weights average 1 over a batch (false, `weights: trajectory` and `alpha: 0` are the paper's formula)."
    replayed: Annotated[Literal["evolved", "all"], Absent("evolved")] = "evolved"
    "Of which successes the replayed rows are: those of evolved rollouts, or of bare ones, too."
    fade: Annotated[float, Absent(0.0)] = ranged(0.0, 0.0, 1.0)
    """Fresh groups play fewer evolved rollouts once the gap between evolved and bare success in the collected groups
    is smaller than this (0: never)."""
