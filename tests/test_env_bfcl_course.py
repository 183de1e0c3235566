"""A world that sets out along a known program tells and holds what one that runs every call does."""

import importlib
import random

import pytest

from seal.core.types import Call
from seal.env import load_env
from seal.env.base import first_difference
from seal.env.bfcl import bounds
from seal.env.bfcl.gold_reuse import ReusingSession
from seal.verify.gold import gold_program, resumed

trajectories = importlib.import_module("trajectories")

ENV = load_env("bfcl")
TASKS = {task.task_id: task for task in ENV.tasks()}


@pytest.mark.parametrize("kind", sorted(trajectories.CHANGES))
def test_results_and_states_are_those_of_a_session_that_runs_everything(kind):
    """Played from any turn on; the state is asked for now and then, as that must change nothing either."""
    rng, compared = random.Random(kind), 0
    for task in ENV.tasks()[:: 97 if kind != "shared_default" else 7]:
        if (turns := trajectories.trajectory(ENV, task, kind, 5)) is None:
            continue
        gold, start = gold_program(ENV, task), rng.randrange(len(task.turns))
        plain, following = ENV.open(task), resumed(ENV, task, gold, start)
        for turn in task.turns[:start]:
            plain.raw_results(turn.gold)
        assert isinstance(following, ReusingSession)
        for target, calls in zip(gold.turns[start:], trajectories.flat(turns)[start:], strict=True):
            for call in calls:
                assert following.call(call) == plain.call(call), (task.task_id, call)
                if not rng.randrange(8):
                    assert following.state() == plain.state()
            assert following.difference(target.state) == plain.difference(target.state)
            if not rng.randrange(8):
                assert following.state_since(target.state) == plain.state_since(target.state) == plain.state()
            found = first_difference(plain.state(), target.state)
            assert (found or [None])[0] == (plain.difference(target.state) or [None])[0]
        assert following.state() == plain.state()
        compared += 1
    assert compared > 5


def test_a_class_that_nothing_left_the_course_of_is_never_made():
    task = next(task for task in ENV.tasks() if len(task.initial_state["classes"]) == 2 and len(task.turns) > 2)
    session = resumed(ENV, task, gold_program(ENV, task), 1)
    for turn in task.turns[1:]:
        session.raw_results([*turn.gold, Call("no_such_tool", {})])
    assert session._parts == {}
    assert session.state() == gold_program(ENV, task).turns[-1].state and len(session._parts) == 2


def test_calls_that_are_not_run_count_towards_the_bounds_of_a_world(monkeypatch):
    task = TASKS["multi_turn_base_0"]
    calls = [call for turn in task.turns for call in turn.gold]
    monkeypatch.setattr(bounds, "MAX_CALLS", 2)
    session = resumed(ENV, task, gold_program(ENV, task), 0)
    assert session.raw_results(calls)[:3] == ENV.open(task).raw_results(calls)[:3]
    assert bounds.TOO_MANY_CALLS in session.raw_results(calls)[0]


def test_a_number_is_worded_at_the_precision_it_was_computed_with():
    session = ENV.open(TASKS["multi_turn_base_49"])
    call = Call("logarithm", {"value": 20, "base": 10, "precision": 2})
    assert session.raw_results([call]) == ["{'result': mpf('1.3027')}"]
