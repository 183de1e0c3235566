"""One round in memory, composed of the calls that the stages make: collect, judge, evolve, train, evaluate."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from seal.core.judged import Judged
from seal.core.seeds import RoundKey
from seal.core.types import Json
from seal.diagnose.judge import judge, relabelled
from seal.diagnose.priority import DRAWN
from seal.diagnose.profile import profile
from seal.diagnose.worth import drawn_priority
from seal.env.base import Environment
from seal.evaluate.do_nothing import idle
from seal.evaluate.metrics import cost, metrics, round_metrics
from seal.evaluate.suite import Evaluation, evaluate_policy
from seal.evolve.evolution import Evolved, next_interface
from seal.interface.state import InterfaceState
from seal.rollout.action_cache import ActionLog
from seal.rollout.collect import collect
from seal.settings.params import DiagnoseParams, EvaluateParams, Round
from seal.train.batch import TrainRow
from seal.train.loop import Carried, TrainResult, train_round
from seal.train.on_policy import OnPolicy
from seal.train.reweight import Factors

Row = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Line:
    """Where a line of rounds stands. `policy` is trained in place; all else is replaced round by round.

    `rows` and `start_rows`: evaluations of this round and of the start; `metrics`: as in metrics.json. `start`: the
    policy as it was at the start, where `train.reference` asks for it.
    """

    round_id: str
    depth: int
    policy: Any
    interface: InterfaceState = InterfaceState()
    profile: Sequence[Row] = ()
    factors: Factors = Factors()
    replay: Sequence[TrainRow] = ()
    rows: Sequence[Row] = ()
    start_rows: Sequence[Row] = ()
    metrics: dict[str, Any] = field(default_factory=dict)
    start: Any = None


@dataclass(frozen=True, slots=True)
class Played:
    """Everything one round made, for whoever wants to keep more than `Line` does."""

    collected: list[Judged]
    evolved: Evolved
    trained: TrainResult
    evaluation: Evaluation


def start_line(
    env: Environment,
    policy: Any,
    params: EvaluateParams,
    priority: Sequence[str],
    run_seed: int,
    round_id: str = "r0",
    log: ActionLog | None = None,
) -> Line:
    """Evaluate the start: depth 0, bare interface. `log`: see seal.rollout.engine.play."""
    interface = InterfaceState()
    evaluation = evaluate_policy(env, policy, interface, params, priority, round_id, run_seed, log=log)
    found = metrics(evaluation, env.tasks(), params.split) | idle(env, evaluation, params.split)
    identity = {"env": env.name, "policy_hash": policy.hash}
    rows = evaluation.rows(round_id)
    whole = round_metrics(found, round_id, "", 0, interface, interface, {}, **identity)
    return Line(round_id, 0, policy, interface, rows=rows, start_rows=rows, metrics=whole)


def run_round(
    env: Environment,
    line: Line,
    params: Round,
    round_id: str,
    run_seed: int,
    on_progress: Callable[[str], None] | None = None,
    resume_dir: Path | None = None,
) -> tuple[Line, Played]:
    """The round after `line`. `line.policy` is changed in place. `on_progress` gets the name of each phase begun.

    `resume_dir`: a folder for this round alone; a round that was killed goes on from there with the same bytes. Who has
    kept what the round made removes it.
    """
    say = on_progress or (lambda phase: None)
    log = ActionLog(resume_dir / "played") if resume_dir else None
    policy, depth, priority = line.policy, line.depth + 1, params.diagnose.priority
    say("collect")
    played = collect(env, policy, line.interface, params.collect, round_id, depth, run_seed, log=log)
    say("diagnose")
    collected = judge(env, played, priority)
    if priority in DRAWN:
        priority = drawn_priority(priority, env, played, {j.rollout.rollout_id: j.verdicts for j in collected})
        collected = relabelled(env, collected, priority)
        params = replace(params, diagnose=DiagnoseParams(priority))
    found = profile(*_rows(collected), {task.task_id: task.category for task in env.tasks()}, line.profile)
    say("evolve_interface")
    evolved = next_interface(env, policy, line.interface, collected, found, params, round_id, depth, run_seed)
    say("train")
    trained = train_round(
        policy,
        collected,
        OnPolicy(env, evolved.state, params.collect, priority, RoundKey(round_id, depth, run_seed)),
        params.train,
        Carried(line.factors, line.replay, line.start),
        resume_dir / "trained" if resume_dir else None,
    )
    say("evaluate")
    shown = params.collect.mode
    evaluation = evaluate_policy(
        env, policy, evolved.state, params.evaluate, priority, round_id, run_seed, mode=shown, log=log
    )
    scores = metrics(evaluation, env.tasks(), params.evaluate.split, line.rows, line.start_rows)
    scores |= idle(env, evaluation, params.evaluate.split)
    updates = len(trained.curve) * params.train.minibatches * params.train.num_iterations
    spent = {"collect": cost(collected), "probe": evolved.spent, "train": {**cost(trained.played), "updates": updates}}
    whole = round_metrics(
        scores,
        round_id,
        line.round_id,
        depth,
        line.interface,
        evolved.state,
        spent,
        line.metrics["total"],
        env=env.name,
        policy_hash=policy.hash,
    )
    after = replace(
        line,
        round_id=round_id,
        depth=depth,
        interface=evolved.state,
        profile=found,
        factors=trained.factors,
        replay=tuple(trained.replay),
        rows=evaluation.rows(round_id),
        metrics=whole,
    )
    return after, Played(collected, evolved, trained, evaluation)


def _rows(judged: Sequence[Judged]) -> tuple[list[Row], list[Row]]:
    """The columns of trajectories and diagnoses that a profile is made of."""
    played = [
        {"rollout_id": j.rollout.rollout_id, "task_id": j.rollout.task_id, "mode": j.rollout.mode} for j in judged
    ]
    labels = [{"rollout_id": j.rollout.rollout_id, **asdict(d)} for j in judged for d in j.diagnoses]
    return played, labels
