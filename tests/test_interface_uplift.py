"""What a cue is worth: within tasks, where it can be seen, with an interval that few tasks do not make narrow."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_interface_evolve import row, step

from seal.core.judged import Judged
from seal.core.types import Rollout
from seal.evolve.uplift import uplifts


def played(task, dropped, success, mode="full"):
    rollout = Rollout("", task, 0, 0, mode, "", "", (), "finished", dropped)
    return Judged(rollout, (), (), success, 0.0)


def test_uplift_compares_within_tasks():
    state, _ = step([row("constraint_violation", "refund")])
    id_ = state.items[0].id
    rows = [played(f"t{i}", "", 1) for i in range(4)] + [played(f"t{i}", id_, 0) for i in range(4)]
    rows += [played("t0", "", 0, mode="off")] * 9 + [played("lone", id_, 1)]
    (found,) = uplifts(rows, state)
    assert found["uplift"] == 1.0 and 0.0 < found["low"] < 0.3 and found["high"] == 1.0, "four tasks are few"
    assert (found["n_with"], found["n_without"], found["tasks"]) == (4, 5, 4)
    mixed = [played(f"t{i}", dropped, i % 2) for i in range(4) for dropped in ("", id_)]
    assert uplifts(mixed, state)[0]["uplift"] == 0.0


def test_uplift_of_a_task_weighs_by_its_rollouts_of_both_kinds():
    """n1 n0 / (n1 + n0): two tasks of one pair each against a task of two pairs."""
    state, _ = step([row("constraint_violation", "refund")])
    id_ = state.items[0].id
    rows = [played(task, dropped, success) for task in "ab" for dropped, success in (("", 0), (id_, 0))]
    rows += [played("c", dropped, success) for dropped, success in (("", 1), (id_, 0))] * 3
    (found,) = uplifts(rows, state)
    assert found["uplift"] == pytest.approx(1.5 / (0.5 + 0.5 + 1.5))


@pytest.mark.parametrize("difference", [-1, 0, 1])
def test_few_tasks_that_agree_are_no_proof(difference):
    """Three, whose spread is nothing: the interval is wide, and no cue goes for it. Sixty are proof."""
    failure = [row("constraint_violation", "refund")]
    state, _ = step(failure)
    id_ = state.items[0].id
    for tasks, sure in ((3, False), (60, difference < 0)):
        rows = [
            played(f"t{i}", dropped, success)
            for i in range(tasks)
            for dropped, success in (("", difference > 0), (id_, difference < 0))
        ]
        worth = uplifts(rows, state)
        assert worth[0]["uplift"] == difference and worth[0]["low"] < worth[0]["high"]
        after, _ = step(failure, state, round_id="r2", uplifts=worth, retire_uplift=0.0)
        assert bool(after.active) is not sure


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=12))
def test_laws_of_the_uplift_interval(outcomes):
    state, _ = step([row("constraint_violation", "refund")])
    id_ = state.items[0].id
    pairs = [(f"t{i}", *pair) for i, pair in enumerate(outcomes)]
    rows = [played(t, dropped, value) for t, a, b in pairs for dropped, value in (("", a), (id_, b))]
    (found,) = uplifts(rows, state)
    assert -1 <= found["low"] < found["high"] <= 1 and -1 <= found["uplift"] <= 1
    assert found["low"] <= found["uplift"] <= found["high"]


def test_uplift_without_enough_tasks_knows_nothing():
    state, _ = step([row("constraint_violation", "refund")])
    id_ = state.items[0].id
    (found,) = uplifts([played("t", "", 0), played("t", id_, 1)], state)
    assert (found["low"], found["high"]) == (-1.0, 1.0)
    (found,) = uplifts([], state)
    assert (found["uplift"], found["tasks"]) == (0.0, 0)


def test_uplift_counts_an_item_only_where_its_tool_is():
    state, _ = step([row("constraint_violation", "refund")])
    rows = [played("a", "", 1), played("b", "", 1)]
    (found,) = uplifts(rows, state, {"a": ("refund",), "b": ("find",)})
    assert found["n_with"] == 1


def test_uplift_counts_a_hint_only_in_its_category():
    state, _ = step([row("spurious_tool_call", category="miss_param")], kinds=["guidance"])
    rows = [played("a", "", 1), played("b", "", 1)]
    (found,) = uplifts(rows, state, {"a": (), "b": ()}, categories={"a": "miss_param", "b": "base"})
    assert found["n_with"] == 1
    assert uplifts(rows, state, {"a": (), "b": ()})[0]["n_with"] == 2
