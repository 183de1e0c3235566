"""The table of known-bad BFCL tasks: entries are real, shown by play where they can be; scores with and without."""

import json
from dataclasses import replace
from importlib.resources import files

import pytest
from bfcl_cases import gold
from evaluations import evaluated

from seal.core.types import Call
from seal.env import load_env
from seal.env.bfcl.data import known_bad
from seal.env.shop import ShopEnv
from seal.evaluate.metrics import metrics
from seal.interface.state import InterfaceState
from seal.policy.scripted import FaultyPolicy
from seal.settings.play import EvaluateParams
from seal.store.tables import rows_of_tasks
from seal.verify.turns import verify

ENV = load_env("bfcl")
TASKS = {task.task_id: task for task in ENV.tasks()}
KINDS = ("unsolvable", "wrong", "ambiguous")
TABLE = json.loads(files("seal.env.bfcl").joinpath("known_bad.json").read_text())
ENTRIES = TABLE["entries"]
TOLD = [(id_, entry["told"]) for entry in ENTRIES for id_ in entry["tasks"] if "told" in entry]


def valid(task, turns):
    return [verdict.valid for verdict in verify(ENV, task, turns)]


@pytest.mark.parametrize("name", ["bfcl", "bfcl_web"])
def test_every_entry_has_a_kind_a_reason_and_a_source_and_no_task_has_two(name):
    env, package = load_env(name), f"seal.env.{name}"
    table = json.loads(files(package).joinpath("known_bad.json").read_text())
    assert table["version"] >= 1 and table["of"] == f"bfcl-eval {env.version}"
    assert all(entry["kind"] in KINDS and entry["reason"] and entry["source"] for entry in table["entries"])
    ids = [id_ for entry in table["entries"] for id_ in entry["tasks"]]
    known = {task.task_id for task in env.tasks()} | {task.scenario_id for task in env.tasks()}
    assert len(ids) == len(set(ids)) == len(known_bad(package)) and set(ids) <= known


def test_the_tasks_table_carries_the_reasons():
    rows = {row["task_id"]: row["known_bad"] for row in rows_of_tasks(ENV.tasks())}
    assert {id_: reason for id_, reason in rows.items() if reason} == known_bad()
    assert rows["multi_turn_miss_func_49"].startswith("unsolvable: ")


@pytest.mark.parametrize(("id_", "told"), TOLD, ids=[id_ for id_, _ in TOLD])
def test_what_the_request_tells_fails(id_, told):
    """The reference passes; with one argument as the request has it, it fails: so the reference is the odd one."""
    task, turns, changed = TASKS[id_], gold(TASKS[id_]), 0
    assert all(valid(task, turns))
    for turn in turns:
        for i, call in enumerate(turn):
            if call.name == told["tool"] and call.arguments.get(told["argument"]) == told["reference"]:
                turn[i] = Call(call.name, {**call.arguments, told["argument"]: told["value"]})
                changed += 1
    assert changed == 1 and not all(valid(task, turns))


def test_who_serves_a_request_that_needs_no_withheld_tool_fails_at_its_reveal():
    task = TASKS["multi_turn_miss_func_33"]
    (tool, reveal), turns = *task.holdout.items(), gold(TASKS["multi_turn_miss_func_33"])
    assert tool not in {call.name for turn in turns for call in turn}
    turns[reveal - 1], turns[reveal] = turns[reveal], []
    assert [k for k, ok in enumerate(valid(task, turns)) if not ok] == [reveal]


def test_one_reference_alone_calls_a_tool_before_its_reveal():
    early = {
        task.task_id
        for task in TASKS.values()
        for k, turn in enumerate(task.turns)
        for call in turn.gold
        if task.holdout.get(call.name, 0) > k
    }
    assert early == {"multi_turn_miss_func_49"} == {i for i, why in known_bad().items() if why.startswith("unsolv")}


def test_a_number_declared_and_a_text_given_is_task_173_alone():
    types = {doc.name: {p.name: p.type for p in doc.params} for t in TASKS.values() for doc in ENV.docs(t, 99)}
    fits = {"string": str, "integer": int, "number": (int, float)}
    odd = {
        task.task_id
        for task in TASKS.values()
        for turn in task.turns
        for call in turn.gold
        for name, value in call.arguments.items()
        if not isinstance(value, fits.get(types[call.name][name], object))
    }
    assert odd == {f"multi_turn_{name}_173" for name in ("base", "miss_func", "miss_param", "long_context")}


class Marked(ShopEnv):
    """A shop some of whose tasks are known to be bad."""

    def tasks(self):
        return [replace(t, known_bad="x" if t.category == "miss_func" else "") for t in super().tasks()]


@pytest.mark.parametrize(
    "env", [ShopEnv(train=1, dev=1, test=4), Marked(train=1, dev=1, test=4)], ids=["good", "marked"]
)
def test_scores_come_with_and_without_them_only_where_there_are_such(env):
    policy, params = FaultyPolicy(0.5), EvaluateParams()
    played = evaluated(env, policy, InterfaceState(), params)
    found = metrics(played, env.tasks())
    if type(env) is ShopEnv:
        assert "clean" not in found
        return
    rows = [row for row in played.rows("r1") if row["split"] == "test" and "_miss_func_" not in row["task_id"]]
    assert found["strict"]["n"] == 16 and found["clean"]["n"] == len(rows) == 12
    assert found["clean"]["mean"] == pytest.approx(sum(row["success"] for row in rows) / 12, abs=1e-6)
