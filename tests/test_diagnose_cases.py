"""Published mistakes of other diagnoses, on real BFCL tasks (tests/cases.jsonl, kind diagnoser)."""

import json
from pathlib import Path

import pytest

from seal.core.types import Call, Rollout, Step
from seal.diagnose import diagnose
from seal.env import load_env
from seal.tools.error_kinds import error_kind
from seal.tools.parse import parse
from seal.verify.turns import verify

LINES = (Path(__file__).parent / "cases.jsonl").read_text().splitlines()
CASES = {case["id"]: case for case in map(json.loads, LINES)}


@pytest.fixture(scope="module")
def bfcl():
    env = load_env("bfcl")
    return env, {task.task_id: task for task in env.tasks()}


def labelled(bfcl, task_id, turns):
    """Rows of a run given as turns of steps of calls, or of call strings."""
    env, tasks = bfcl
    task, steps = tasks[task_id], []
    session, docs = env.open(task), env.docs(task, len(tasks[task_id].turns) - 1)
    for k, turn in enumerate(turns):
        for i, said in enumerate(turn):
            calls = [c if isinstance(c, Call) else parse(f"[{c}]", "pythonic", docs).calls[0] for c in said]
            steps.append(Step(k, i, "", tuple(calls), results=tuple(session.call(c) for c in calls)))
    rollout = Rollout("r", task_id, 0, 0, "off", "p", "bare", tuple(steps), "finished")
    verdicts = verify(env, task, rollout.calls_by_turn(len(task.turns)))
    return diagnose(env, task, rollout, verdicts), verdicts


def primaries(rows):
    return [row.label for row in rows if row.primary]


def test_repaired_in_the_same_turn_is_a_pass(bfcl):
    case = CASES["diag_recovered"]
    rows, _ = labelled(bfcl, case["input"]["task"], case["input"]["turns"])
    assert primaries(rows) == case["expected"]["labels"]
    assert [row.turn for row in rows if row.detail == "recovered"] == case["expected"]["recovered_turns"]


def test_unknown_tool_outranks_what_follows_from_it(bfcl):
    case = CASES["diag_unknown_tool"]
    rows, verdicts = labelled(bfcl, case["input"]["task"], case["input"]["turns"])
    turn = case["expected"]["failing_turn"]
    assert [verdict.valid for verdict in verdicts].index(False) == turn
    assert primaries(rows)[turn] == case["expected"]["label_at_failing_turn"]


def test_later_right_turns_are_inherited(bfcl):
    case = CASES["diag_no_cascade"]
    task_id = case["input"]["task"]
    gold = [[list(turn.gold)] for turn in bfcl[1][task_id].turns]
    gold[1] = [[Call("nonexistent_tool", {"x": 1})]]
    rows, verdicts = labelled(bfcl, task_id, gold)
    assert primaries(rows)[1] == case["expected"]["label_at_turn1"]
    assert [row.turn for row in rows if row.primary and row.root and not verdicts[row.turn].valid] == [1]
    later = [row for row in rows if row.turn > 1 and not verdicts[row.turn].valid]
    assert later and all(row.detail == "inherited" and row.evidence["from_turn"] == 1 for row in later)


def test_error_shapes():
    case = CASES["diag_error_shapes"]
    for text, expected in zip(case["input"]["observations"], case["expected"]["is_error"], strict=True):
        assert expected is None or bool(error_kind(text)) == expected, text


@pytest.mark.parametrize("name", ["verify_exploration_ok", "verify_spurious_in_withheld_turn"])
def test_labels_where_the_official_verdict_is_valid(bfcl, name):
    case = CASES[name]
    rows, _ = labelled(bfcl, case["input"]["task"], case["input"]["turns"])
    assert primaries(rows) == case["expected"]["labels"]


def test_early_then_silent(bfcl):
    case = CASES["verify_early_then_silent"]
    rows, _ = labelled(bfcl, case["input"]["task"], case["input"]["turns"])
    assert primaries(rows)[2] == case["expected"]["label_at_turn2"]
    assert primaries(rows)[3] == case["expected"]["label_at_turn3"]
