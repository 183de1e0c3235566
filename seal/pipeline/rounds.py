"""One round in memory, composed of the calls that the stages make: collect, judge, evolve, train, evaluate."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from seal.core.judged import Judged
from seal.core.seeds import RoundKey
from seal.core.types import Json
from seal.diagnose.judge import judge, relabelled
from seal.diagnose.label_worth import drawn_priority
from seal.diagnose.primary_label import DRAWN
from seal.diagnose.profile import profile
from seal.env.base import Environment
from seal.evaluate.do_nothing import idle
from seal.evaluate.metrics import cost, metrics, round_metrics
from seal.evaluate.suite import Evaluation, evaluate_policy
from seal.evolve.next_interface import Evolved, next_interface
from seal.interface.state import InterfaceState
from seal.rollout.collect import collect
from seal.rollout.engine import PlayRun
from seal.rollout.play_cache import PlayCache
from seal.settings.evolve import DiagnoseParams
from seal.settings.play import EvaluateParams
from seal.settings.rounds import Round
from seal.train.batch import TrainRow
from seal.train.loop import TrainResult, train_round
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
    log: PlayCache | None = None,
) -> Line:
    """Evaluate the start: depth 0, bare interface. `log`: the cache of seal.rollout.engine.PlayRun."""
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
    log = PlayCache(resume_dir / "played") if resume_dir else None
    policy, depth, priority = line.policy, line.depth + 1, params.diagnose.priority
    say("collect")
    key = RoundKey(round_id, depth, run_seed)
    played = collect(env, policy, line.interface, params.collect, key, run=PlayRun(cache=log))
    say("diagnose")
    collected = judge(env, played, priority)
    if priority in DRAWN:
        priority = drawn_priority(priority, env, collected)
        collected = relabelled(env, collected, priority)
        params = params.model_copy(update={"diagnose": DiagnoseParams(priority=priority)})
    found = profile(collected, {task.task_id: task.category for task in env.tasks()}, line.profile)
    say("evolve_interface")
    evolved = next_interface(env, policy, line.interface, collected, found, params, RoundKey(round_id, depth, run_seed))
    say("train")
    trained = train_round(
        policy,
        env,
        collected,
        evolved.state,
        params.collect,
        params.train,
        priority,
        round_id,
        depth,
        run_seed,
        line.factors,
        resume_dir / "trained" if resume_dir else None,
        reference=line.start,
        replay=line.replay,
    )
    say("evaluate")
    shown = params.collect.mode
    evaluation = evaluate_policy(
        env, policy, evolved.state, params.evaluate, priority, round_id, run_seed, mode=shown, log=log
    )
    scores = metrics(evaluation, env.tasks(), params.evaluate.split, line.rows, line.start_rows)
    scores |= idle(env, evaluation, params.evaluate.split)
    updates = len(trained.curve) * params.train.minibatches * params.train.num_iterations
    spent = {"collect": cost(collected), "probe": evolved.spent, "train": {**cost(trained.fresh), "updates": updates}}
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
