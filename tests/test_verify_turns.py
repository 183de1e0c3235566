"""Verdicts of every turn: gold passes, handed cases come out as told, no run changes the next."""

import json

import pytest
from bfcl_cases import CASES, gold

from seal.core.types import Call, Rollout, Step
from seal.env import load_env
from seal.env.base import ABSENT, first_difference
from seal.tools.parse import parse
from seal.verify.rollout import progress, success
from seal.verify.turns import digest, verify

ENVS = {name: load_env(name) for name in ("shop", "compliance", "bfcl")}
BFCL = {task.task_id: task for task in ENVS["bfcl"].tasks()}


def valid(env, task, turns):
    return [verdict.valid for verdict in verify(env, task, turns)]


@pytest.mark.parametrize("name", ENVS)
def test_gold_passes_everywhere(name):
    env = ENVS[name]
    for task in env.tasks():
        verdicts = verify(env, task, gold(task))
        assert all(v.valid and v.state_ok and v.response_ok and not v.evidence for v in verdicts), task.task_id


@pytest.mark.parametrize("name", ENVS)
def test_doing_nothing_solves_no_task(name):
    env = ENVS[name]
    for task in env.tasks()[::3]:
        found = valid(env, task, [[] for _ in task.turns])
        assert found == [not turn.gold for turn in task.turns] or not all(found)


def turns_of(case):
    """Calls per turn of a handed case."""
    task, given = BFCL[case["input"]["task"]], case["input"]
    docs = ENVS["bfcl"].docs(task, len(task.turns))
    turns = gold(task)
    if "calls" in given:
        turns[given["turn"]] = [parse(text, "pythonic", docs).calls[0] for text in given["calls"]]
    elif given["turns"] != "reference":
        turns = [[parse(t, "pythonic", docs).calls[0] for step in turn for t in step] for turn in given["turns"]]
    return task, turns


@pytest.mark.parametrize("case", [c for c in CASES.values() if c["kind"] == "verifier"], ids=lambda case: case["id"])
def test_handed_cases(case):
    task, turns = turns_of(case)
    found, expected = valid(ENVS["bfcl"], task, turns), case["expected"]
    assert all(found) == expected["official_valid"]
    if "failing_turn" in expected:
        assert found.index(False) == expected["failing_turn"]
    if "offending_call" in expected:
        call = parse(expected["offending_call"], "pythonic").calls[0]
        assert call in task.turns[expected["turn"]].gold and task.holdout[call.name] == expected["revealed_at_turn"]


def test_a_failed_run_leaves_nothing_for_the_next():
    """Handed case env_repeat_same_name."""
    env, task = ENVS["bfcl"], BFCL[CASES["env_repeat_same_name"]["input"]["task"]]
    wrong = gold(task)
    wrong[0] = [Call("cd", {"folder": "document"}), Call("rm", {"file_name": "final_report.pdf"})]
    for _ in range(2):
        assert not all(valid(env, task, wrong))
        assert all(valid(env, task, gold(task)))


def test_what_counts_in_a_turn_without_gold():
    shop = ENVS["shop"]
    task = next(t for t in shop.tasks() if t.category == "miss_param" and any(not u.gold for u in t.turns))
    turns = gold(task)
    empty = next(k for k, turn in enumerate(task.turns) if not turn.gold)
    turns[empty] = list(task.turns[empty + 1].gold)
    assert not valid(shop, task, turns)[empty]  # a built-in domain judges the early write
    task = BFCL["multi_turn_miss_func_0"]
    turns = gold(task)
    turns[2] = [Call("mkdir", {"dir_name": "spurious"})]
    found = verify(ENVS["bfcl"], task, turns)
    assert found[2].valid and not found[2].state_ok and not found[3].valid


def test_later_turns_are_judged_after_a_failing_one():
    task = BFCL["multi_turn_base_0"]
    turns = gold(task)
    turns[2] = []
    verdicts = verify(ENVS["bfcl"], task, turns)
    assert len(verdicts) == len(task.turns) and verdicts[2].evidence["no_calls"] and verdicts[1].valid


def test_evidence_is_json_and_holds_no_answer():
    task = BFCL["multi_turn_base_0"]
    turns = gold(task)
    turns[0] = [Call("ls", {})]
    evidence = verify(ENVS["bfcl"], task, turns)[0].evidence
    assert evidence["attribute"] == "GorillaFileSystem.root" and evidence["missing_results"] == 3
    assert "final_report" not in json.dumps(evidence)


def test_first_difference_and_digest_take_keys_of_mixed_types():
    assert digest({1: "a", "1": "a"}) == digest({"1": "a", 1: "a"}) != digest({1: "a"})
    assert first_difference({"p": {1: "a", "x": 2}}, {"p": {1: "b", "x": 2}})[0] == "p.1"
    assert first_difference({"p": 1}, {}) == ("p", 1, ABSENT)
    assert first_difference({"p": 1}, {"p": 1}) is None


def test_success_needs_every_turn_to_be_reached():
    env = ENVS["bfcl"]
    task = next(t for t in env.tasks() if not t.turns[-1].gold)
    verdicts = verify(env, task, gold(task))
    last = len(task.turns) - 1
    full = Rollout("r", task.task_id, 0, 0, "off", "", "", tuple(Step(k, 0, "") for k in range(last + 1)), "finished")
    cut = Rollout("r", task.task_id, 0, 0, "off", "", "", full.steps[:last], "step_limit")
    assert success(task, verdicts, full) and not success(task, verdicts, cut)
    assert (full.turns_reached, cut.turns_reached) == (last + 1, last)
    assert progress(task, verdicts) == 1.0
