"""A round's training: step 0 on the stored rollouts of `collect`, later steps on new ones under the new interface.

Torch and TRL load when `train_round` runs, not on import.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from seal.core.errors import ArtifactError, ParamError
from seal.core.judged import Judged
from seal.core.types import Credit
from seal.settings.train import TrainParams
from seal.train import resume
from seal.train.batch import Batch, TrainRow, assemble
from seal.train.curve import curve_row
from seal.train.on_policy import OnPolicy, evolved_per_group, groups_without_signal
from seal.train.optimise import Optimise, StepMetrics, Steps, UpdatePlan
from seal.train.preferences import pair_batch
from seal.train.ranks import gathered, rank
from seal.train.replay import MAX_ROWS, rows_to_replay, sampled
from seal.train.reweight import Factors, TurnWeight, update_factors

MAX_REPLACEMENTS = 2  # times that groups without signal are replaced in a step
_SHAPE = {"played": [dict], "weights": [dict], "curve": {"step": int}, "factors": dict}  # of a step that is kept


@dataclass(frozen=True, slots=True)
class Carried:
    """What a round's training takes over from the rounds before it.

    `factors`: the parent round's; `replay`: its rows to imitate again, oldest first; `reference`: the policy that the
    line starts with, where `train.reference` asks for it.
    """

    factors: Factors = Factors()
    replay: Sequence[TrainRow] = ()
    reference: Any = None


@dataclass(frozen=True, slots=True)
class TrainStep:
    """A finished step, and all there is to recall it from.

    `played`: the rollouts that training played in it (step 0 has the round's collected ones, but for groups that
    replace others); `curve`: see seal.train.curve; `factors`: after it.
    """

    played: tuple[Judged, ...]
    weights: tuple[TurnWeight, ...]
    curve: dict[str, Any]
    factors: Factors


@dataclass(slots=True)
class TrainResult:
    """What a round's training left behind; the policy itself was changed in place.

    `factors`, `replay`: for the next round, see Carried.
    """

    steps: list[TrainStep] = field(default_factory=list)
    factors: Factors = Factors()
    replay: list[TrainRow] = field(default_factory=list)

    @property
    def played(self) -> list[Judged]:
        """Rollouts that training played, with verdicts and diagnoses."""
        return [j for step in self.steps for j in step.played]

    @property
    def step_of(self) -> dict[str, int]:
        """Rollout id -> step, for all of `played`."""
        return {j.rollout.rollout_id: number for number, step in enumerate(self.steps) for j in step.played}

    @property
    def weights(self) -> list[TurnWeight]:
        return [row for step in self.steps for row in step.weights]

    @property
    def curve(self) -> list[dict[str, Any]]:
        """A row a step, keys CURVE; None where a step has no such figure."""
        return [step.curve for step in self.steps]

    def weight_rows(self, round_id: str) -> list[dict[str, Any]]:
        """Rows of the `weights` table. Phase "collect": of a rollout that training did not play itself."""
        played, rows = self.step_of, []
        for number, step in enumerate(self.steps):
            for weight in step.weights:
                row = asdict(weight)
                del row["tokens"]
                phase = "train" if weight.rollout_id in played else "collect"
                rows.append({"round": round_id, "phase": phase, "train_step": number, **row})
        return rows


def train_round(
    policy: Any,
    collected: Sequence[Judged],
    play: OnPolicy,
    params: TrainParams,
    before: Carried = Carried(),
    resume_dir: Path | None = None,
    on_progress: Callable[[dict[str, Any]], None] | None = None,
) -> TrainResult:
    """Train `policy.model` in place; same inputs, same bytes on one CPU.

    Args: `play` plays the groups of the later steps; `resume_dir` is an ignored folder that belongs to exactly these
    inputs: an interrupted call leaves its state there and the next one goes on from it; the caller forgets it
    (seal.store.files) once what came of the training is written. `on_progress` gets each curve row, also those that are
    gone on from.
    Raises ArtifactError when another policy than this one, as it is now, played the collected rollouts.
    """
    result = TrainResult(factors=before.factors, replay=list(before.replay))
    if params.algorithm == "none" or not params.steps:
        return result
    if policy.model is None:
        raise ParamError("train.algorithm", params.algorithm, f"none: a policy of kind {policy.name} has no weights")
    check_player(policy, collected)
    how = play.collect_params
    evolved = evolved_per_group(how.evolved, collected, params.fade)
    play = replace(play, collect_params=how.model_copy(update={"evolved": evolved}))
    rows = max(len(collected), how.tasks * how.group_size)
    rows *= 1 + (MAX_REPLACEMENTS if params.zero_variance == "resample" else 0)
    rows = rows * (1 + bool(params.rehearse)) + params.replay
    reference = _reference_weights(before.reference, params)
    plan = UpdatePlan(params, rows, play.key.seed("optimise"), how.temperature, reference)
    _Loop(policy, collected, play, plan, result, on_progress).run(resume_dir)
    return result


def check_player(policy: Any, collected: Sequence[Judged]) -> None:
    """Raise ArtifactError when some of the rollouts are another policy's, or this one's before it changed."""
    now = policy.hash
    for j in collected:
        if j.rollout.policy_hash != now:
            value = f"{j.rollout.rollout_id} was played by {j.rollout.policy_hash}, and this is {now}"
            raise ArtifactError("policy of the collected rollouts", value, "run the round's collect stage again")


def credit_of(params: TrainParams) -> Credit:
    """What a round's advantages compare. Only those of grpo can be a turn's own."""
    return params.credit if params.algorithm == "grpo" else "rollout"


def _reference_weights(reference: Any, params: TrainParams) -> dict[str, Any] | None:
    """Trained weights of the start's policy where the reference is to be it; None for the parent's."""
    if params.reference == "parent":
        return None
    if reference is None:
        raise ParamError("train.reference", params.reference, "no policy of the start was given: use parent")
    return {name: p.detach() for name, p in reference.model.named_parameters() if p.requires_grad}


def _algorithm(name: str) -> tuple[Callable[[Sequence[Judged], TrainParams, Factors], Batch], Optimise]:
    """How an algorithm makes a step's batch, and what trains on it."""
    if name == "grpo":
        from seal.train.grpo import train

        return assemble, train
    if name == "sft":
        from seal.train.sft import demonstrations, train

        return demonstrations, train
    if name == "dpo":
        from seal.train.dpo import train

        return pair_batch, train
    raise ParamError("train.algorithm", name, "one of grpo, sft, dpo, none")


@dataclass
class _Loop:
    """The steps of one round: asks for rollouts, makes batches, keeps what `result` holds."""

    policy: Any
    collected: Sequence[Judged]
    play: OnPolicy
    plan: UpdatePlan
    result: TrainResult
    on_progress: Callable[[dict[str, Any]], None] | None

    def __post_init__(self) -> None:
        self.params = self.plan.params
        self.make_batch, self.train = _algorithm(self.params.algorithm)
        self.replays = self.params.replay > 0 and self.params.algorithm != "dpo"  # whose rows come in pairs

    def run(self, resume_dir: Path | None) -> None:
        """Optimise over all steps, from where `resume_dir` left off."""
        from seal.policy.optim import adamw, restore

        model = self.policy.model
        optimizer = adamw(model, self.params.lr)
        state, finished_before = (resume.load(resume_dir, _SHAPE) if resume_dir else None) or (None, [])
        for row in finished_before:
            self._recall(resume.of_json(TrainStep, row))

        def finished(number: int, metrics: StepMetrics) -> None:
            step = self._finish(number, metrics)
            if resume_dir and rank().number == 0:
                resume.save(resume_dir, number, step, model, optimizer)

        restored = (lambda: restore(state, model, optimizer)) if state else (lambda: None)
        self.train(self.policy, self.plan, Steps(self._batch_of, finished, len(finished_before), restored), optimizer)
        gathered(None)  # the state may be cleared: none is still to read it

    def _batch_of(self, step: int) -> Batch:
        self.played = list(self.play(self.policy, step)) if step else []
        self.judged = list(self.played if step else self.collected)
        if self.params.zero_variance == "resample":
            self._replace_groups(step)
        result = self.result
        result.factors = update_factors(result.factors, self.judged, self.params)
        batch = self.make_batch(self.judged, self.params, result.factors)
        again = sampled(result.replay, self.params.replay, self.plan.seed, step) if self.replays else []
        self._add_to_replay(self.judged, batch)
        self.batch, self.replayed = batch.with_rows(again), len(again)
        return self.batch

    def _replace_groups(self, step: int) -> None:
        """For each group without signal one of another task, at most MAX_REPLACEMENTS times."""
        credit = credit_of(self.params)
        missing = groups_without_signal(self.judged, credit)
        for _ in range(MAX_REPLACEMENTS):
            more = self.play(self.policy, step, self.judged, missing) if missing else []
            self.judged += more
            self.played += more
            missing = groups_without_signal(more, credit)

    def _add_to_replay(self, judged: Sequence[Judged], batch: Batch) -> None:
        if self.replays:
            more = rows_to_replay(judged, batch, self.params.replayed == "all")
            self.result.replay = [*self.result.replay, *more][-MAX_ROWS:]

    def _finish(self, number: int, metrics: StepMetrics) -> TrainStep:
        curve = curve_row(number, self.judged, self.batch, self.replayed, metrics)
        step = TrainStep(tuple(self.played), self.batch.weights, curve, self.result.factors)
        self._keep(step)
        return step

    def _recall(self, step: TrainStep) -> None:
        self._keep(step)
        self.result.factors = step.factors
        if self.replays:
            judged = step.played if step.curve["step"] else [*self.collected, *step.played]
            self._add_to_replay(judged, self.make_batch(judged, self.params, step.factors))

    def _keep(self, step: TrainStep) -> None:
        self.result.steps.append(step)
        if self.on_progress:
            self.on_progress(step.curve)
