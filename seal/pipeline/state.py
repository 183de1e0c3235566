"""A round as one value: what it begins with, and what each of its phases adds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seal.core.judged import Judged
from seal.core.seeds import RoundKey
from seal.core.types import Json, Rollout
from seal.env.base import Environment
from seal.evaluate.suite import Evaluation
from seal.evolve.next_interface import Evolved
from seal.interface.state import InterfaceState
from seal.train.batch import TrainRow
from seal.train.loop import TrainResult
from seal.train.reweight import Factors

Row = Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A finished round, or the start of a line of rounds, as the next round finds it.

    policy             with its weights; the next round trains this very object
    interface          what the next round collects under
    profile            rows of the failure profile
    factors, replay    of training: label factors, and rows to imitate again, oldest first
    evaluations        rows of its `evaluations` table; start_evaluations: those of the line's start
    metrics            as in metrics.json
    """

    id: str
    policy: Any = None
    interface: InterfaceState = InterfaceState()
    profile: Sequence[Row] = ()
    factors: Factors = Factors()
    replay: Sequence[TrainRow] = ()
    evaluations: Sequence[Row] = ()
    start_evaluations: Sequence[Row] = ()
    metrics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RoundState:
    """A round in work. `parent` stays as it is; each phase (seal.pipeline.phases) fills the fields that it names.

    collect            rollouts
    verify             judged: rollouts with verdicts and outcomes
    diagnose           judged: with labels, too; priority, the order of labels it took; profile
    evolve_interface   evolved (the change log and its evidence), interface
    train              trained, policy (the parent's, changed in place)
    evaluate           evaluation, metrics

    `spent`: phase -> {"rollouts", "tokens"} (train: "updates", too) of what was played for training. `start_policy`:
    the policy of the line's start, where `train.reference` asks for it.
    """

    key: RoundKey
    env: Environment
    parent: Checkpoint
    start_policy: Any = None
    rollouts: Sequence[Rollout] = ()
    judged: Sequence[Judged] = ()
    priority: Sequence[str] = ()
    profile: Sequence[Row] = ()
    evolved: Evolved | None = None
    interface: InterfaceState = InterfaceState()
    trained: TrainResult | None = None
    policy: Any = None
    evaluation: Evaluation | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    spent: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def checkpoint(self) -> Checkpoint:
        """What the next round begins with; after `evaluate`."""
        rows = self.evaluation.rows(self.key.id)
        return Checkpoint(
            self.key.id,
            policy=self.policy,
            interface=self.interface,
            profile=self.profile,
            factors=self.trained.factors if self.trained else Factors(),
            replay=tuple(self.trained.replay) if self.trained else (),
            evaluations=rows,
            start_evaluations=self.parent.start_evaluations if self.key.depth else rows,
            metrics=self.metrics,
        )
