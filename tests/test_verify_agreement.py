"""Our verdicts beside BFCL's own on every kind of trajectory (benchmarks/agree_verify.py, on a few tasks)."""

import importlib
import json

import pytest

from seal.core.types import Call
from seal.env import load_env
from seal.env.bfcl.checker import EXECUTOR
from seal.verify.gold import gold_program
from seal.verify.turns import verify

agree = importlib.import_module("agree_verify")
trajectories = importlib.import_module("trajectories")

ENV = load_env("bfcl")
TASKS = {task.task_id: task for task in ENV.tasks()}
KINDS = tuple(kind for kind in trajectories.CHANGES if kind != "shared_default")


@pytest.mark.parametrize("kind", KINDS)
def test_verdict_turn_and_error_type_agree(kind):
    rows = agree.compare(ENV, [kind], every=16, seed=1, state=None)
    assert len(rows) >= 20 and [row for row in rows if row["ours"] != row["official"]] == []


@pytest.mark.slow
def test_all_agree_or_are_explained(tmp_path):
    """Every task and kind, another seed than the one the results were made with; goes on from a file."""
    rows = agree.compare(ENV, list(trajectories.CHANGES), every=1, seed=7, state=tmp_path / "rows.jsonl")
    counts = agree.table(rows, list(trajectories.CHANGES))[-1]
    assert counts["trajectories"] > 12_000 and counts["unexplained"] == 0
    assert counts["agree"] + counts["shared"] == counts["trajectories"]
    assert agree.compare(ENV, list(trajectories.CHANGES), every=1, seed=7, state=tmp_path / "rows.jsonl") == rows


def test_a_defect_of_the_official_state_is_told_by_running_the_sides_apart():
    """The reference's own result changes when the policy writes into a default that both share."""
    task = next(task for task in ENV.tasks() if trajectories.trajectory(ENV, task, "shared_default", 0))
    row = agree._row(ENV, task, "shared_default", 0, trajectories.trajectory(ENV, task, "shared_default", 0))
    assert row["ours"] == row["apart"] != row["official"]
    assert agree.table([row], ["shared_default"])[-1]["shared"] == 1
    assert agree.table([{**row, "apart": row["official"]}], ["shared_default"])[-1]["unexplained"] == 1


def test_sides_apart_give_the_official_verdict_where_nothing_is_shared():
    task = TASKS["multi_turn_long_context_56"]
    for kind in ("gold", "call_dropped"):
        turns = trajectories.trajectory(ENV, task, kind, 0)
        assert agree.apart(ENV, task, kind, 0) == agree.official(task, turns) == agree.ours(ENV, task, turns)


@pytest.mark.parametrize("kind", sorted(trajectories.CHANGES))
def test_a_trajectory_hangs_on_its_seed_alone(kind):
    for task in ENV.tasks()[::160]:
        first, second = (trajectories.trajectory(ENV, task, kind, 3) for _ in range(2))
        assert first == second
        assert first is None or (len(first) == len(task.turns) and all(step for steps in first for step in steps))


def test_a_fault_changes_the_calls():
    tasks = ENV.tasks()[::20]
    for kind in KINDS[2:]:  # after gold and one_call_a_step
        made = [(task, trajectories.trajectory(ENV, task, kind, 0)) for task in tasks]
        made = [(task, trajectories.flat(turns)) for task, turns in made if turns is not None]
        changed = [turns != [list(turn.gold) for turn in task.turns] for task, turns in made]
        assert sum(changed) > len(made) / 3 > 3, kind


def test_verdicts_are_alike_whatever_was_judged_before():
    """Kept gold programs, scenarios and wordings change nothing."""
    tasks = ENV.tasks()[::89]
    given = [(task, trajectories.trajectory(ENV, task, "several", seed)) for task in tasks for seed in range(3)]
    fresh = load_env("bfcl")
    renewed = {task.task_id: task for task in fresh.tasks()}
    there = [verify(ENV, task, trajectories.flat(turns)) for task, turns in given]
    back = [verify(fresh, renewed[task.task_id], trajectories.flat(turns)) for task, turns in reversed(given)]
    assert there == back[::-1]


def test_gold_is_recognised_by_type_and_value():
    task = TASKS["multi_turn_base_0"]
    turn = gold_program(ENV, task).turns[0]
    assert turn.is_played(task.turns[0].gold) and not turn.is_played(task.turns[0].gold[1:])
    number = next(
        t for t in ENV.tasks() for call in t.turns[0].gold if any(type(v) is int for v in call.arguments.values())
    )
    calls = list(number.turns[0].gold)
    as_float = [Call(c.name, {k: float(v) if type(v) is int else v for k, v in c.arguments.items()}) for c in calls]
    assert as_float == calls and not gold_program(ENV, number).turns[0].is_played(as_float)


def test_no_instance_is_left_anywhere():
    for task in ENV.tasks()[::50]:
        for kind in ("gold", "junk", "several"):
            if (turns := trajectories.trajectory(ENV, task, kind, 0)) is not None:
                json.dumps(agree.ours(ENV, task, turns))
                agree.official(task, turns)
    assert [name for name in vars(importlib.import_module(EXECUTOR)) if name.endswith("_instance")] == []
