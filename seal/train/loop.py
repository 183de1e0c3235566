"""A round's training: step 0 on the stored rollouts of `collect`, later steps on fresh ones under the new interface.

Torch and TRL load when `train_round` runs, not on import.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from seal.core.errors import ArtifactError, ParamError
from seal.core.seeds import seed_for
from seal.core.types import Diagnosis, Rollout, Verdict
from seal.env.base import Environment
from seal.interface.state import InterfaceState
from seal.train.batch import Batch, assemble
from seal.train.judged import Judged
from seal.train.reweight import Factors, TurnWeight, WeightParams, update_factors
from seal.train.settings import OptimSettings, StepMetrics

CURVE = [
    "step",
    "success_bare",
    "success_evolved",
    "rollouts",
    "tokens",
    "loss",
    "kl",
    "clip_ratio",
    "entropy",
    "sampler_gap",
    "mixed_groups",
    "all_pass_groups",
    "all_fail_groups",
    "share_masked",
    "dropped",
    "excluded",
]


@dataclass(slots=True)
class TrainResult:
    """What a round's training left behind; the policy itself was changed in place.

    fresh    rollouts of steps 1, 2, ... with verdicts and diagnoses (those of step 0 are the round's collected ones)
    weights  rows of the `weights` table, sorted
    curve    a row a step, keys CURVE; None where a step has no such figure
    factors  the state of the dynamic weights, for the next round
    """

    fresh: list[Judged] = field(default_factory=list)
    weights: list[dict[str, Any]] = field(default_factory=list)
    curve: list[dict[str, Any]] = field(default_factory=list)
    factors: Factors = Factors()


def judge(env: Environment, rollouts: Sequence[Rollout], priority: Sequence[str]) -> list[Judged]:
    """Verify and diagnose rollouts; the same library functions as the stages use."""
    from seal.diagnose import diagnose
    from seal.verify.outcome import progress, success
    from seal.verify.rollout import verify_rollout

    tasks = {task.task_id: task for task in env.tasks()}
    judged = []
    for rollout in rollouts:
        task = tasks[rollout.task_id]
        verdicts = verify_rollout(env, task, rollout)
        diagnoses = diagnose(env, task, rollout, verdicts, priority)
        passed = success(task, verdicts, rollout)
        judged.append(Judged(rollout, tuple(verdicts), tuple(diagnoses), passed, progress(task, verdicts)))
    return judged


def pair(
    rollouts: Sequence[Rollout],
    verdicts: Mapping[str, Sequence[Verdict]],
    diagnoses: Mapping[str, Sequence[Diagnosis]],
    outcomes: Mapping[str, tuple[bool, float]],
) -> list[Judged]:
    """Stored rollouts with what the verify and diagnose stages wrote, by rollout id; outcomes: (success, progress)."""
    try:
        return [
            Judged(r, tuple(verdicts[r.rollout_id]), tuple(diagnoses.get(r.rollout_id, ())), *outcomes[r.rollout_id])
            for r in rollouts
        ]
    except KeyError as error:
        raise ArtifactError("verdict of rollout", error.args[0], "run the round's verify stage again") from None


def train_round(
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
) -> TrainResult:
    """Train `policy.model` in place; same inputs, same bytes on one CPU.

    Args: `interface` is the round's new one; `factors` the parent round's; `priority` the diagnosis priority;
    `resume_dir` an ignored folder that belongs to exactly these inputs: an interrupted call leaves its state there, the
    next one goes on from it, and a finished one removes it. `on_progress` gets each curve row.
    """
    if train_params.algorithm == "none" or not train_params.steps:
        return TrainResult(factors=factors)
    from seal.rollout.collect import collect

    def fresh(step: int) -> list[Judged]:
        policy.model.eval()
        played = collect(env, policy, interface, collect_params, round_id, depth, run_seed, "train", step)
        return judge(env, played, priority)

    settings = OptimSettings(
        steps=train_params.steps,
        rows=max(len(collected), collect_params.tasks * collect_params.group_size),
        lr=train_params.lr,
        epsilon=train_params.epsilon,
        beta=train_params.beta,
        minibatches=train_params.minibatches,
        num_iterations=getattr(train_params, "num_iterations", 1),
        max_grad_norm=train_params.max_grad_norm,
        temperature=collect_params.temperature,
        micro_batch=getattr(train_params, "micro_batch", 0),
        seed=seed_for(run_seed, depth, "optimise"),
    )
    loop = Loop(collected, fresh, train_params, round_id, factors, on_progress)
    loop.run(policy, settings, resume_dir)
    return loop.result


class Loop:
    """The steps of one round: asks for rollouts, makes batches, keeps rows. `fresh(step)` plays and judges."""

    def __init__(
        self,
        collected: Sequence[Judged],
        fresh: Callable[[int], list[Judged]],
        params: Any,
        round_id: str,
        factors: Factors = Factors(),
        on_progress: Callable[[dict[str, Any]], None] | None = None,
    ):
        self.collected, self.fresh, self.params, self.round_id = collected, fresh, params, round_id
        self.on_progress = on_progress
        self.weighting = WeightParams.of(params)
        self.result = TrainResult(factors=factors)
        self._judged: list[Judged] = []
        self._batch: Batch | None = None

    def run(self, policy: Any, settings: OptimSettings, resume_dir: Path | None = None) -> None:
        """Optimise over all steps, from where `resume_dir` left off."""
        from seal.train import resume
        from seal.train.plain import adamw

        if self.params.algorithm == "grpo":
            from seal.train.grpo import train
        elif self.params.algorithm == "sft":
            from seal.train.sft import train
        else:
            raise ParamError("train.algorithm", self.params.algorithm, "one of grpo, sft, none")
        optimizer = adamw(policy.model, settings.lr)
        state, rows = (resume.load(resume_dir) if resume_dir else None) or (None, [])
        for row in rows:
            self._recall(row)

        def after_step(step: int, metrics: StepMetrics) -> None:
            row = self._record(step, metrics)
            if resume_dir:
                resume.save(resume_dir, step, row, policy.model, optimizer)

        restore = (lambda: resume.restore(state, policy.model, optimizer)) if state else None
        train(policy.model, policy.tokenizer, self._batch_of_step, settings, optimizer, after_step, len(rows), restore)
        if resume_dir:
            shutil.rmtree(resume_dir, ignore_errors=True)

    def _batch_of_step(self, step: int) -> Batch:
        self._judged = self.fresh(step) if step else list(self.collected)
        self.result.factors = update_factors(self.result.factors, self._judged, self.weighting)
        if self.params.algorithm == "sft":
            from seal.train.sft import demonstrations

            self._batch = demonstrations(self._judged, self.weighting, self.result.factors, self.params.condition)
        else:
            p = self.params
            how = (p.condition, p.drop_negative, p.zero_variance, p.credit)
            self._batch = assemble(self._judged, self.weighting, self.result.factors, *how)
        return self._batch

    def _record(self, step: int, metrics: StepMetrics) -> dict[str, Any]:
        """Keep the finished step; returns all there is to recall it from."""
        curve = _curve_row(step, self._judged, self._batch, metrics)
        weights = [_weight_row(self.round_id, step, row) for row in self._batch.weights]
        row = {
            "judged": self._judged if step else [],
            "weights": weights,
            "curve": curve,
            "factors": self.result.factors.to_json(),
        }
        self._keep(row)
        if self.on_progress:
            self.on_progress(curve)
        return row

    def _recall(self, row: dict[str, Any]) -> None:
        from seal.train.resume import of_json

        self._keep({**row, "judged": [of_json(Judged, judged) for judged in row["judged"]]})
        self.result.factors = Factors.of_json(row["factors"])

    def _keep(self, row: dict[str, Any]) -> None:
        self.result.fresh += row["judged"]
        self.result.weights += row["weights"]
        self.result.curve.append(row["curve"])


def _weight_row(round_id: str, step: int, row: TurnWeight) -> dict[str, Any]:
    data = asdict(row)
    del data["tokens"]
    return {"round": round_id, "phase": "train" if step else "collect", "train_step": step, **data}


def _curve_row(step: int, judged: Sequence[Judged], batch: Batch, metrics: StepMetrics) -> dict[str, Any]:
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
        "excluded": batch.excluded,
        **metrics,
    }
    return {key: row[key] for key in CURVE}
