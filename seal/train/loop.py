"""A round's training: step 0 on the stored rollouts of `collect`, later steps on fresh ones under the new interface.

Torch and TRL load when `train_round` runs, not on import.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seal.core.errors import ArtifactError, ParamError
from seal.core.judged import Judged
from seal.core.seeds import seed_for
from seal.core.types import Credit
from seal.env.base import Environment
from seal.interface.state import InterfaceState
from seal.train.batch import Batch, TrainRow, assemble
from seal.train.curve import curve_row, weight_row
from seal.train.on_policy import Fresh, faded, groups_without_signal
from seal.train.ranks import gathered, rank
from seal.train.replay import KEPT, drawn, worth_replaying
from seal.train.reweight import Factors, WeightParams, update_factors
from seal.train.settings import OptimSettings, StepMetrics

RESAMPLED = 2  # times that groups without signal are replaced in a step
_ROW = {"judged": [dict], "weights": [dict], "curve": {"step": int}, "factors": dict}  # what a step is recalled from


@dataclass(slots=True)
class TrainResult:
    """What a round's training left behind; the policy itself was changed in place.

    fresh    rollouts that training played, with verdicts and diagnoses (those of step 0 are the round's collected ones,
             but for groups that replace others)
    steps    for each of `fresh`, its step
    weights  rows of the `weights` table, sorted
    curve    a row a step, keys CURVE; None where a step has no such figure
    factors  the state of the dynamic weights, for the next round
    replay   rows to imitate again, oldest first, for the next round
    """

    fresh: list[Judged] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    weights: list[dict[str, Any]] = field(default_factory=list)
    curve: list[dict[str, Any]] = field(default_factory=list)
    factors: Factors = Factors()
    replay: list[TrainRow] = field(default_factory=list)


def _old_train_round(
    policy: Any,
    env: Environment,
    collected: Sequence[Judged],
    interface: InterfaceState,
    collect_params: Any,
    train_params: Any,
    priority: Sequence[str],
    round_id: str,
    depth: int,
    run_seed: int,
    factors: Factors = Factors(),
    resume_dir: Path | None = None,
    on_progress: Callable[[dict[str, Any]], None] | None = None,
    reference: Any = None,
    replay: Sequence[TrainRow] = (),
) -> TrainResult:
    """Train `policy.model` in place; same inputs, same bytes on one CPU.

    Args: `interface` is the round's new one; `factors` the parent round's; `priority` the diagnosis priority;
    `resume_dir` an ignored folder that belongs to exactly these inputs: an interrupted call leaves its state there and
    the next one goes on from it; the caller forgets it (seal.store.files) once what came of the training is written.
    `on_progress` gets each curve row, also those that are gone on from. `reference`: the policy that the line starts
    with, where `train.reference` asks for it. `replay`: the parent round's rows to imitate again.
    Raises ArtifactError when another policy than this one, as it is now, played the collected rollouts.
    """
    if train_params.algorithm == "none" or not train_params.steps:
        return TrainResult(factors=factors, replay=list(replay))
    if policy.model is None:
        raise ParamError(
            "train.algorithm", train_params.algorithm, f"none: a policy of kind {policy.name} has no weights"
        )
    check_player(policy, collected)
    evolved = faded(collect_params.evolved, collected, train_params.fade)
    collect_params = collect_params.model_copy(update={"evolved": evolved})
    where, credit = (round_id, depth, run_seed), compares(train_params)
    fresh = Fresh(env, policy, interface, collect_params, priority, *where, train_params.curriculum, credit)
    resampled = RESAMPLED if train_params.zero_variance == "resample" else 0
    rows = max(len(collected), collect_params.tasks * collect_params.group_size) * (1 + resampled)
    rows = rows * (1 + bool(train_params.rehearse)) + train_params.replay
    settings = OptimSettings(
        steps=train_params.steps,
        rows=rows,
        lr=train_params.lr,
        epsilon=train_params.epsilon,
        beta=train_params.beta,
        minibatches=train_params.minibatches,
        num_iterations=train_params.num_iterations,
        max_grad_norm=train_params.max_grad_norm,
        temperature=collect_params.temperature,
        micro_batch=train_params.micro_batch,
        seed=seed_for(run_seed, depth, "optimise"),
        loss=train_params.loss,
        dpo_beta=train_params.dpo_beta,
        schedule=train_params.schedule,
        epsilon_high=train_params.epsilon_high,
        reference=_weights_of(reference, train_params),
    )
    loop = Loop(collected, fresh, train_params, round_id, factors, on_progress, replay)
    loop.run(policy, settings, resume_dir)
    return loop.result


def check_player(policy: Any, collected: Sequence[Judged]) -> None:
    """Raise ArtifactError when some of the rollouts are another policy's, or this one's before it changed."""
    own = policy.hash
    for j in collected:
        if j.rollout.policy_hash != own:
            value = f"{j.rollout.rollout_id} was played by {j.rollout.policy_hash}, and this is {own}"
            raise ArtifactError("policy of the collected rollouts", value, "run the round's collect stage again")


def compares(params: Any) -> Credit:
    """What a round's advantages compare. Only those of grpo can be a turn's own."""
    return params.credit if params.algorithm == "grpo" else "rollout"


def _weights_of(reference: Any, params: Any) -> dict[str, Any] | None:
    """Trained weights of the start's policy where the reference is to be it; None for the parent's."""
    if params.reference == "parent":
        return None
    if reference is None:
        raise ParamError("train.reference", params.reference, "no policy of the start was given: use parent")
    return {name: p.detach() for name, p in reference.model.named_parameters() if p.requires_grad}


class Loop:
    """The steps of one round: asks for rollouts, makes batches, keeps rows.

    `fresh(step, seen)` plays and judges the groups of a step, knowing all that the round has seen; with `n` it plays n
    groups of tasks that `seen` does not hold.
    """

    def __init__(
        self,
        collected: Sequence[Judged],
        fresh: Callable[..., list[Judged]],
        params: Any,
        round_id: str,
        factors: Factors = Factors(),
        on_progress: Callable[[dict[str, Any]], None] | None = None,
        replay: Sequence[TrainRow] = (),
    ):
        self.collected, self.fresh, self.params, self.round_id = collected, fresh, params, round_id
        self.on_progress = on_progress
        self.weighting = WeightParams.of(params)
        self.result = TrainResult(factors=factors, replay=list(replay))
        self._judged: list[Judged] = []
        self._played: list[Judged] = []
        self._batch: Batch | None = None
        self._n_replayed = self._seed = 0

    def run(self, policy: Any, settings: OptimSettings, resume_dir: Path | None = None) -> None:
        """Optimise over all steps, from where `resume_dir` left off."""
        from seal.train import resume
        from seal.train.updates import adamw

        if self.params.algorithm == "grpo":
            from seal.train.grpo import train
        elif self.params.algorithm == "sft":
            from seal.train.sft import train
        elif self.params.algorithm == "dpo":
            from seal.train.dpo import train
        else:
            raise ParamError("train.algorithm", self.params.algorithm, "one of grpo, sft, dpo, none")
        optimizer, self._seed = adamw(policy.model, settings.lr), settings.seed
        state, rows = (resume.load(resume_dir, _ROW) if resume_dir else None) or (None, [])
        for row in rows:
            self._recall(row)

        def after_step(step: int, metrics: StepMetrics) -> None:
            row = self._record(step, metrics)
            if resume_dir and rank().number == 0:
                resume.save(resume_dir, step, row, policy.model, optimizer)

        restore = (lambda: resume.restore(state, policy.model, optimizer)) if state else None
        train(policy.model, policy.tokenizer, self._batch_of_step, settings, optimizer, after_step, len(rows), restore)
        gathered(None)  # the state may be cleared: none is still to read it

    def _batch_of_step(self, step: int) -> Batch:
        self._judged = self.fresh(step, [*self.collected, *self.result.fresh]) if step else list(self.collected)
        self._played = list(self._judged) if step else []
        if self.params.zero_variance == "resample":
            self._resample(step)
        self.result.factors = update_factors(self.result.factors, self._judged, self.weighting)
        self._batch = self._assemble(self._judged)
        again = drawn(self.result.replay, self.params.replay, self._seed, step) if self._replays else []
        self._n_replayed = len(again)
        self._remember(self._judged, self._batch)
        return self._batch.beside(again)

    def _assemble(self, judged: list[Judged]) -> Batch:
        p, weights = self.params, (self.weighting, self.result.factors)
        if p.algorithm == "sft":
            from seal.train.sft import demonstrations

            return demonstrations(judged, *weights, p.condition)
        if p.algorithm == "dpo":
            from seal.train.preferences import pair_batch

            return pair_batch(judged, *weights, p.condition)
        how = (p.condition, p.drop_negative, p.zero_variance, p.credit, p.partial_credit, p.negative, p.rehearse)
        return assemble(judged, *weights, *how)

    @property
    def _replays(self) -> bool:
        return self.params.replay > 0 and self.params.algorithm != "dpo"  # whose rows come in pairs

    def _remember(self, judged: list[Judged], batch: Batch) -> None:
        if self._replays:
            more = worth_replaying(judged, batch, self.params.replayed == "all")
            self.result.replay = [*self.result.replay, *more][-KEPT:]

    def _resample(self, step: int) -> None:
        """For each group without signal one of another task, up to RESAMPLED times, while there are other tasks."""
        credit = compares(self.params)
        missing = groups_without_signal(self._judged, credit)
        for _ in range(RESAMPLED):
            more = self.fresh(step, self._judged, missing) if missing else []
            self._judged += more
            self._played += more
            missing = groups_without_signal(more, credit)

    def _record(self, step: int, metrics: StepMetrics) -> dict[str, Any]:
        """Keep the finished step; returns all there is to recall it from."""
        curve = curve_row(step, self._judged, self._batch, self._n_replayed, metrics)
        fresh = {j.rollout.rollout_id for j in self._played}
        weights = [weight_row(self.round_id, step, row, row.rollout_id in fresh) for row in self._batch.weights]
        row = {
            "judged": self._played,
            "weights": weights,
            "curve": curve,
            "factors": self.result.factors.to_json(),
        }
        self._keep(row)
        return row

    def _recall(self, row: dict[str, Any]) -> None:
        from seal.train.resume import of_json

        played = [of_json(Judged, judged) for judged in row["judged"]]
        self._keep({**row, "judged": played})
        self.result.factors = Factors.of_json(row["factors"])
        if self._replays:
            judged = played if row["curve"]["step"] else [*self.collected, *played]
            self._remember(judged, self._assemble(judged))

    def _keep(self, row: dict[str, Any]) -> None:
        self.result.fresh += row["judged"]
        self.result.steps += [row["curve"]["step"]] * len(row["judged"])
        self.result.weights += row["weights"]
        self.result.curve.append(row["curve"])
        if self.on_progress:
            self.on_progress(row["curve"])


@dataclass(frozen=True, slots=True)
class OnPolicy:
    env: Environment
    interface: InterfaceState
    collect_params: Any
    priority: Sequence[str]
    key: Any


@dataclass(frozen=True, slots=True)
class Carried:
    factors: Factors = Factors()
    replay: Sequence[TrainRow] = ()
    reference: Any = None


def train_round(policy, collected, play, params, before, resume_dir=None, on_progress=None):
    key = play.key
    return _old_train_round(
        policy,
        play.env,
        collected,
        play.interface,
        play.collect_params,
        params,
        play.priority,
        key.id,
        key.depth,
        key.run_seed,
        before.factors,
        resume_dir,
        on_progress,
        before.reference,
        before.replay,
    )
