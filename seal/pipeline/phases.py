"""The six phases of a round, each `phase(state, params, run) -> state`, and the round that they make.

A stage of the pipeline reads a state from disk, calls one of them and writes what it added (seal.pipeline.folder); an
experiment calls all of them in memory (`run_round`). Nothing else composes a round.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from seal.core.types import Mode
from seal.diagnose import judge
from seal.diagnose.label_worth import drawn_priority
from seal.diagnose.profile import profile
from seal.evaluate.do_nothing import do_nothing
from seal.evaluate.metrics import cost, metrics, round_metrics
from seal.evaluate.suite import Planned, evaluate_policy, plan_evaluation
from seal.evolve.next_interface import next_interface
from seal.pipeline.state import RoundState
from seal.rollout import collect as groups
from seal.rollout.engine import PlayRun
from seal.rollout.play_cache import PlayCache
from seal.settings.play import EvaluateParams
from seal.settings.rounds import Round
from seal.train.loop import Carried, train_round
from seal.train.on_policy import OnPolicy


@dataclass(frozen=True, slots=True)
class Run:
    """How a phase runs; nothing of it reaches what the phase makes.

    on_progress  gets the number of rollouts that ended, or of train steps that are done, since its last call
    resume_dir   an ignored folder for this work alone: where it was killed, the same call goes on from there, with the
                 same bytes. Whoever has kept what the work made removes it.
    """

    on_progress: Callable[[int], None] | None = None
    resume_dir: Path | None = None

    def play(self) -> PlayRun:
        cache = PlayCache(self.resume_dir / "played") if self.resume_dir else None
        return PlayRun(on_progress=self.on_progress, cache=cache)


def collect(state: RoundState, params: Round, run: Run = Run()) -> RoundState:
    """Play groups of training tasks with the parent's policy under the parent's interface."""
    parent = state.parent
    rollouts = groups.collect(state.env, parent.policy, parent.interface, params.collect, state.key, run=run.play())
    return replace(state, rollouts=rollouts, spent={**state.spent, "collect": cost(rollouts)})


def verify(state: RoundState, params: Round, run: Run = Run()) -> RoundState:
    """A verdict for every user turn of the collected rollouts, and each rollout's outcome."""
    return replace(state, judged=judge.verified(state.env, state.rollouts))


def diagnose(state: RoundState, params: Round, run: Run = Run()) -> RoundState:
    """Labels for every user turn, and the failure profile they make."""
    priority = drawn_priority(params.diagnose.priority, state.env, state.judged)
    judged = judge.label(state.env, state.judged, priority)
    categories = {task.task_id: task.category for task in state.env.tasks()}
    return replace(state, judged=judged, priority=priority, profile=profile(judged, categories, state.parent.profile))


def evolve_interface(state: RoundState, params: Round, run: Run = Run()) -> RoundState:
    """The next interface from the round's evidence, with a row for every decision."""
    parent, what = state.parent, (state.judged, state.profile)
    evolved = next_interface(state.env, parent.policy, parent.interface, *what, params, state.key)
    spent = {**state.spent, "probe": evolved.spent}
    return replace(state, evolved=evolved, interface=evolved.state, spent=spent)


def train(state: RoundState, params: Round, run: Run = Run()) -> RoundState:
    """Update the parent's policy on the collected rollouts, then on new ones under the new interface."""
    parent = state.parent
    play = OnPolicy(state.env, state.interface, params.collect, state.priority, state.key)
    before = Carried(parent.factors, parent.replay, state.start_policy)
    resume_dir = run.resume_dir / "trained" if run.resume_dir else None
    stepped = (lambda row: run.on_progress(1)) if run.on_progress else None
    trained = train_round(parent.policy, state.judged, play, params.train, before, resume_dir, stepped)
    updates = len(trained.curve) * params.train.minibatches * params.train.num_iterations
    spent = {**cost(j.rollout for j in trained.played), "updates": updates}
    return replace(state, trained=trained, policy=parent.policy, spent={**state.spent, "train": spent})


def evaluate(state: RoundState, params: Round, run: Run = Run()) -> RoundState:
    """Held-out tasks with the trained policy, interface off (and on, where that is measured), and metrics.json."""
    return _measured(state, params.evaluate, params.collect.mode, run)


def evaluate_start(state: RoundState, params: EvaluateParams, run: Run = Run()) -> RoundState:
    """The same for the start of a line, whose interface is bare: depth 0 of every curve."""
    return _measured(state, params, "off", run)


PHASES = (collect, verify, diagnose, evolve_interface, train, evaluate)


def run_round(state: RoundState, params: Round, run: Run = Run()) -> RoundState:
    """All phases of the round after `state.parent`, whose policy is trained in place."""
    for phase in PHASES:
        state = phase(state, params, run)
    return state


def planned_evaluation(state: RoundState, params: EvaluateParams, mode: Mode) -> list[Planned]:
    """What `evaluate` plays; `mode`: how the interface shows where it is measured, that in which the round collects."""
    return plan_evaluation(state.env.tasks(), params, state.key, mode if state.interface.active else "off")


def _measured(state: RoundState, params: EvaluateParams, mode: Mode, run: Run) -> RoundState:
    env, parent, tasks = state.env, state.parent, state.env.tasks()
    planned = planned_evaluation(state, params, mode)
    evaluation = evaluate_policy(env, state.policy, state.interface, planned, params, state.priority, run.play())
    before = (parent.evaluations, parent.start_evaluations) if parent.id else (None, None)
    found = metrics(evaluation, tasks, params.split, *before) | do_nothing(env, evaluation, params.split)
    identity = {"env": env.name, "policy_hash": state.policy.hash}
    interfaces, total = (parent.interface, state.interface), parent.metrics.get("total")
    whole = round_metrics(found, state.key, parent.id, *interfaces, state.spent, total, **identity)
    return replace(state, evaluation=evaluation, metrics=whole)
