"""The sections of params.yaml as frozen dataclasses: types, defaults, ranges. seal.settings.params reads them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from seal.core.labels import DEFAULT_PRIORITY, DEFAULT_UTILITY
from seal.core.types import CUE_KINDS, Mode, Split
from seal.settings.typed import URL, later, ranged

RECIPE = 1  # version of what the stages compute; a round keeps the one it was made with


@dataclass(frozen=True, slots=True)
class RunParams:
    """`seed` decides every draw; `threads` of torch change seconds, not bytes, on one machine."""

    seed: int = ranged(0, 0, 2**31)
    threads: int = ranged(1, 1, 256)


@dataclass(frozen=True, slots=True)
class FlowParams:
    """A line of rounds ends after `max_rounds`, or `patience` rounds without `min_gain` of the dev score."""

    max_rounds: int = ranged(20, 1)
    patience: int = ranged(3, 1)
    min_gain: float = ranged(0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class EvaluateParams:
    """Held-out play, interface off (`measure_on`: and on). `tasks` 0: the whole split; tokens as in CollectParams.

    `measure_dev`: the dev split, too, by which a line stops and is chosen; without it neither is judged.
    """

    split: Split = "test"
    tasks: int = ranged(0, 0)
    trials: int = ranged(1, 1, 1000)
    temperature: float = ranged(0.0, 0.0, 10.0)
    measure_on: bool = True
    max_action_tokens: int = ranged(24, 1)
    context: int = ranged(512, 16)
    measure_dev: bool = later(True, True)


@dataclass(frozen=True, slots=True)
class CollectParams:
    """`tasks` groups of `group_size` rollouts, the first `evolved` under the interface in `mode`, the rest bare.

    An evolved rollout leaves out one random cue with probability `item_dropout`. `max_action_tokens`: cap of one policy
    output; `context`: of the whole episode. `start_turns`: groups start at a random user turn from the gold prefix.
    """

    tasks: int = ranged(16, 1)
    group_size: int = ranged(8, 2, 1024)
    evolved: int = ranged(3, 0)
    mode: Mode = "full"
    temperature: float = ranged(1.0, 0.0, 10.0)
    max_action_tokens: int = ranged(24, 1)
    context: int = ranged(512, 16)
    item_dropout: float = ranged(0.5, 0.0, 1.0)
    start_turns: bool = False


@dataclass(frozen=True, slots=True)
class DiagnoseParams:
    """Which label a turn is known by when it has several, first wins: an order, or the name of one (see
    seal.diagnose.worth): fixed (the default order), or drawn from the collected rollouts by frequency, or learned."""

    priority: tuple[str, ...] | Literal["fixed", "frequency", "learned"] = tuple(map(str, DEFAULT_PRIORITY))


@dataclass(frozen=True, slots=True)
class GateParams:
    """Paired rollouts that new cues must not hurt: on how many probe tasks (0: no gate)."""

    tasks: int = ranged(0, 0)


@dataclass(frozen=True, slots=True)
class RewriteParams:
    """A model behind `url` (OpenAI-compatible, up to /v1; "": none) that rewords new cues; see JudgeParams."""

    url: str = field(default="", metadata=URL)
    model: str = ""
    key_env: str = ""
    seconds: float = ranged(60.0, 0.1)
    cache: str = ".seal/rewrites"


CueKind = Literal["plain", "all", *CUE_KINDS]  # groups of operators (see seal.evolve.step), then operators


@dataclass(frozen=True, slots=True)
class EvolveParams:
    """How the interface changes. `token_budget`: of all cues together, in the policy's tokens (hf) or in words; a new
    cue needs `min_support` failing turns.

    A cue retires when its failure stayed at `retire_rate` or below for `retire_patience` rounds, or when the interval
    of its uplift lies below `retire_uplift` (-1: never). `kinds`: plain (short fixed forms), all, or operators.
    `interface`: kept leaves the parent's as it is. `withheld`: silent leaves out what names a tool before its task
    reveals it; named, as before this could be chosen, shows it.
    """

    interface: Literal["evolved", "kept", "none", "static", "published", "random"] = "evolved"
    token_budget: int = ranged(400, 0)
    max_new: int = ranged(12, 0)
    min_support: int = ranged(2, 1)
    min_rate: float = ranged(0.0, 0.0, 1.0)
    retire_rate: float = ranged(0.0, 0.0, 1.0)
    retire_patience: int = ranged(2, 1)
    retire_uplift: float = later(0.0, 0.0, -1.0, 1.0)
    kinds: tuple[CueKind, ...] = later(("plain",), ("plain",))
    rewrite: RewriteParams = later(RewriteParams(), RewriteParams())
    gate: GateParams = field(default_factory=GateParams)
    withheld: Literal["silent", "named"] = later("silent", "named")


@dataclass(frozen=True, slots=True)
class TrainParams:
    """The policy's update. See seal.train for `condition`, `weights` and the closed loop's `alpha`, `ema`, `clip`.

    `credit`: an advantage compares whole rollouts, or each user turn among those that reached it in a right state.
    `loss`: how TRL puts grpo's tokens together; `reference` of the KL term (`beta`) and of dpo: the parent's policy, or
    that of the line's start. `zero_variance`: groups without signal are masked, kept in the token count, or replaced by
    groups of other tasks. `partial_credit`: what the turns served are worth in a failed rollout of a mixed group.
    `normalise`: weights average 1 over a batch (false, `weights: trajectory` and `alpha: 0` are the paper's formula).
    `curriculum`: exponent of (success rate times failure rate) by which fresh steps choose tasks (0: evenly).
    `schedule`: of the learning rate over the round's updates; linear rises in the first tenth, then falls to 0.
    `loss` cispo weighs log p by the ratio up to `epsilon_high`, vespo by a gamma weight of the rollout's ratio; the
    others clip at 1 + `epsilon_high` (0: epsilon; luspo the rollout's ratio; sapo by a sigmoid instead), so that what a
    cue made possible and the bare policy finds improbable is never learned.
    `negative`: what is left of a negative advantage that is not dropped. `rehearse`: how strongly evolved successes
    train under the prompt they saw, too, so that cues go on being read. `replay`: as many rows of earlier steps and
    rounds a step imitates again, those of `replayed` rollouts. `fade`: fresh groups play fewer evolved rollouts once
    the gap between evolved and bare success in the collected groups is smaller than this (0: never).
    """

    algorithm: Literal["grpo", "sft", "dpo", "none"] = "grpo"
    condition: Literal["within_group", "stripped", "as_collected"] = "within_group"
    steps: int = ranged(10, 0)
    lr: float = ranged(3e-4, 0.0, 1.0)
    weights: Literal["turn", "trajectory", "none"] = "turn"
    drop_negative: bool | Literal["all"] = True
    epsilon: float = ranged(0.2, 0.0, 1.0)
    beta: float = ranged(0.0, 0.0)
    minibatches: int = ranged(2, 1)
    num_iterations: int = ranged(1, 1)
    micro_batch: int = ranged(0, 0)
    max_grad_norm: float = ranged(1.0, 0.0)
    utility: Mapping[str, float] = ranged({str(k): v for k, v in DEFAULT_UTILITY.items()}, 0.0, 10.0)
    alpha: float = ranged(1.0, 0.0)
    ema: float = ranged(0.25, 0.0, 1.0)
    clip: tuple[float, float] = ranged((0.5, 2.0), 1e-3)
    zero_variance: Literal["mask", "keep", "resample"] = "mask"
    credit: Literal["rollout", "turn"] = "rollout"
    loss: Literal["dapo", "grpo", "bnpo", "dr_grpo", "cispo", "sapo", "luspo", "vespo"] = later("cispo", "dapo")
    reference: Literal["parent", "start"] = later("parent", "parent")
    dpo_beta: float = later(0.1, 0.1, 1e-4, 100.0)
    partial_credit: float = later(0.0, 0.0, 0.0, 1.0)
    curriculum: float = later(0.0, 0.0, 0.0, 10.0)
    schedule: Literal["constant", "linear"] = later("linear", "constant")
    epsilon_high: float = later(1.0, 0.0, 0.0, 1000.0)
    negative: float = later(0.1, 1.0, 0.0, 1.0)
    rehearse: float = later(0.5, 0.0, 0.0, 1.0)
    replay: int = later(160, 0, 0)
    normalise: bool = later(True, True)
    replayed: Literal["evolved", "all"] = later("evolved", "evolved")
    fade: float = later(0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Start:
    """Where a line of rounds starts: an environment and a policy (`kind` and what that kind takes), evaluated once."""

    env: str
    policy: Mapping[str, Any]
    recipe: int = ranged(RECIPE, 1)
    evaluate: EvaluateParams = field(default_factory=EvaluateParams)


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the first round of a line takes where nothing else is said."""

    collect: CollectParams = field(default_factory=CollectParams)
    diagnose: DiagnoseParams = field(default_factory=DiagnoseParams)
    evolve: EvolveParams = field(default_factory=EvolveParams)
    train: TrainParams = field(default_factory=TrainParams)
    evaluate: EvaluateParams = field(default_factory=EvaluateParams)


@dataclass(frozen=True, slots=True)
class Round:
    """One resolved round."""

    parent: str
    env: str
    collect: CollectParams
    diagnose: DiagnoseParams
    evolve: EvolveParams
    train: TrainParams
    evaluate: EvaluateParams
    recipe: int = ranged(RECIPE, 1)
