"""Evolution by evidence: which label asks for which cue, budgets, retirement, determinism, and the fixed arms."""

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.core.errors import ParamError
from seal.core.labels import FAILURES, Label
from seal.core.settings import CueKind, EvolveParams
from seal.core.typed import read
from seal.core.types import Fact, Param, ToolDoc
from seal.interface.baselines import published, random_items, static
from seal.interface.evolve import GROUPS, evolve, roll_back
from seal.interface.mine import Mined
from seal.interface.operators import KINDS, count_words
from seal.interface.render import render
from seal.interface.state import InterfaceState
from seal.interface.uplift import uplifts

FACTS = (
    Fact("find", "order", "required", True, documented=True),
    Fact("find", "", "returns", ["shipment"]),
    Fact("hold", "shipment", "required", True, documented=True),
    Fact("refund", "order", "required", True, documented=True),
    Fact("refund", "order", "format", "ORD-"),
    Fact("refund", "reason", "required", True, documented=True),
    Fact("refund", "reason", "enum", {"late": "K1", "damaged": "K3"}),
    Fact("refund", "", "needs", ["verify"]),
    Fact("verify", "order", "required", True, documented=True),
    Fact("discount", "", "role", ["approve"]),
    Fact("discount", "", "purpose", "discount", documented=True),
)
PARAMS = {"min_support": 1}
VERIFY_FIRST = Mined("refund", "verify", "precondition", 3, 0, 0.5)


def row(label, tool="", parameter="", n=4, rate=0.5, category="base", **more):
    return {
        "category": category,
        "tool": tool,
        "parameter": parameter,
        "label": label,
        "n": n,
        "rate": rate,
        "rollouts": ["r2", "r1"],
        **more,
    }


def texts(state):
    return {(item.target, item.text) for item in state.active}


EMPTY = InterfaceState()


def step(profile, parent=EMPTY, mined=(), round_id="r1", facts=FACTS, **params):
    return evolve(parent, profile, facts, mined, {**PARAMS, **params}, round_id)


@pytest.mark.parametrize(
    ("failure", "cues"),
    [
        (row("argument_mismatch", "refund", "reason"), {("refund.reason", "damaged K3 late K1")}),
        (row("argument_mismatch", "refund", "order"), {("refund.order", "starts ORD-")}),
        (row("argument_mismatch", "hold", "shipment"), {("find", "returns shipment=")}),
        (row("constraint_violation", "refund"), {("refund", "after verify")}),
        (row("constraint_violation", "discount"), {("discount", "requires approve")}),
        (row("missing_tool_call", "find"), {("find", "returns shipment=")}),
        (row("missing_tool_call", "verify"), {("refund", "after verify")}),
        (
            row("state_mismatch", "refund", "reason"),
            {("refund.reason", "damaged K3 late K1"), ("refund", "after verify")},
        ),
        (
            row("recovery_failure", "refund", "reason"),
            {("refund.reason", "reason= damaged K3 late K1"), ("refund", "after verify")},
        ),
        (row("pass", "refund"), set()),
        (row("env_error", "refund"), set()),
    ],
)
def test_a_label_and_its_target_decide_the_cue(failure, cues):
    state, rows = step([failure])
    assert texts(state) == cues
    assert {(r["action"], r["label"], r["support"], r["rate"]) for r in rows} <= {("add", failure["label"], 4, 0.5)}
    assert all(r["evidence"] == ["r1", "r2"] for r in rows)


@pytest.mark.parametrize(
    ("label", "kinds"),
    [
        ("invalid_tool_call", {"call_format", "recover_any", "guidance"}),
        ("spurious_tool_call", {"guidance"}),
        ("budget_exhausted", {"recover_any", "guidance"}),
    ],
)
def test_labels_without_a_target_get_templates_and_guidance(label, kinds):
    state, _ = step([row(label, category="miss_param")], kinds=KINDS)
    assert {item.kind for item in state.active} == kinds
    assert {item.target for item in state.active if item.kind == "guidance"} == {"miss_param"}


def test_recovery_templates_follow_the_errors_seen():
    profile = [row("recovery_failure", "refund")]
    params = {"kinds": ["recover_any"], "min_support": 1}
    state, _ = evolve(InterfaceState(), profile, FACTS, (), params, "r1", errors={"wrong_type": 2})
    assert {item.target for item in state.active} == {"wrong_type"}


def test_mined_order_stands_in_for_a_fact_and_is_not_said_twice():
    profile = [row("constraint_violation", "refund")]
    without = tuple(fact for fact in FACTS if fact.kind != "needs")
    state, _ = step(profile, mined=[VERIFY_FIRST], facts=without)
    assert [(item.kind, item.text) for item in state.active] == [("order", "after verify")]
    state, _ = step(profile, mined=[VERIFY_FIRST])
    assert [item.text for item in state.active] == ["after verify"]


def test_documented_facts_wait_until_failing_persists():
    told = tuple(replace(fact, documented=True) for fact in FACTS)
    failure = row("argument_mismatch", "refund", "reason")
    assert not step([failure], facts=told)[0].active
    state, _ = step([{**failure, "n_parent": 3}], facts=told)
    assert ("refund.reason", "damaged K3 late K1") in texts(state)


def test_support_ranks_and_max_new_and_budget_bound():
    profile = [row("argument_mismatch", "refund", "reason", n=3), row("constraint_violation", "discount", n=9)]
    assert texts(step(profile, max_new=1)[0]) == {("discount", "requires approve")}
    assert texts(step(profile, token_budget=3)[0]) == {("discount", "requires approve")}
    assert texts(step(profile, token_budget=5)[0]) == {("discount", "requires approve")}
    assert len(step(profile, token_budget=6)[0].active) == 2
    assert not step(profile, min_support=10)[0].active and not step(profile, min_rate=0.6)[0].active


def test_a_quiet_item_retires_after_patience_and_returns_when_it_fails_again():
    failure = [row("constraint_violation", "refund")]
    first, _ = step(failure)
    second, rows = step([], first, round_id="r2")
    assert second.active and [r["action"] for r in rows] == ["keep"]
    third, rows = step([], second, round_id="r3")
    assert not third.active and [r["action"] for r in rows] == ["retire"] and third.hash == "bare"
    fourth, rows = step(failure, third, round_id="r4")
    assert [(r["action"], r["reason"]) for r in rows] == [("add", "failing again")]
    assert fourth.hash == first.hash and fourth.items[0].born_in == "r1" and len(fourth.items) == 1


def test_a_failing_item_is_kept_and_never_added_twice():
    failure = [row("constraint_violation", "refund")]
    first, _ = step(failure)
    second, rows = step(failure, first, round_id="r2")
    assert second.hash == first.hash and [(r["action"], r["reason"]) for r in rows] == [("keep", "still failing")]


def test_a_harmful_item_retires_for_good():
    failure = [row("constraint_violation", "refund")]
    first, _ = step(failure)
    harm = [{"item": first.items[0].id, "uplift": -0.3, "low": -0.5, "high": -0.1}]
    second, rows = evolve(first, failure, FACTS, (), PARAMS, "r2", uplifts=harm)
    assert not second.active and "uplift" in rows[0]["reason"]
    assert not step(failure, second, round_id="r3")[0].active


@pytest.mark.parametrize(("least", "retired"), [(0.0, False), (0.1, True), (-1.0, False)])
def test_an_item_whose_uplift_is_not_there_retires(least, retired):
    """Its interval is [-0.02, 0.05]: not harmful, but surely worth less than 0.1."""
    failure = [row("constraint_violation", "refund")]
    first, _ = step(failure)
    worth = [{"item": first.items[0].id, "uplift": 0.01, "low": -0.02, "high": 0.05}]
    second, rows = evolve(first, failure, FACTS, (), {**PARAMS, "retire_uplift": least}, "r2", uplifts=worth)
    assert bool(second.active) is not retired
    assert [r["action"] for r in rows] == ["retire" if retired else "keep"]
    assert not retired or rows[0]["reason"] == "uplift below 0.1: at most 0.050"


def test_without_retirement_even_a_harmful_quiet_item_stays():
    first, _ = step([row("constraint_violation", "refund")])
    harm = [{"item": first.items[0].id, "uplift": -0.3, "low": -0.5, "high": -0.1}]
    params = {**PARAMS, "retire_uplift": -1.0, "retire_patience": 1000}
    state = first
    for round_id in ("r2", "r3", "r4"):
        state, _ = evolve(state, [], FACTS, (), params, round_id, uplifts=harm)
    assert state.hash == first.hash


def test_kinds_go_by_group_or_name():
    profile = [row("constraint_violation", "refund")]
    assert {i.kind for i in step(profile, kinds=["all"])[0].active} == {"needs", "guidance"}
    assert {i.kind for i in step(profile, kinds=["plain"])[0].active} == {"needs"}
    assert {i.kind for i in step(profile, kinds=["guidance", "plain"])[0].active} == {"needs", "guidance"}
    with pytest.raises(ParamError, match="plain, all, enum"):
        step(profile, kinds=["most"])
    assert set(get_args(CueKind)) == {*GROUPS, *KINDS}, "an unknown one is refused when params.yaml is read"
    with pytest.raises(ParamError, match="plain, all, enum"):
        read(EvolveParams, {"kinds": ["most"]}, "evolve")


def test_a_mined_order_is_told_with_its_counts_and_after_a_refusal():
    without = tuple(fact for fact in FACTS if fact.kind != "needs")
    state, rows = step(
        [row("constraint_violation", "refund")], mined=[VERIFY_FIRST], facts=without, kinds=["order", "recover_order"]
    )
    assert texts(state) == {("refund", "after verify"), ("refund", "verify must succeed first")}
    assert all("refused until verify succeeded 3 times, fine without it 0 times" in r["reason"] for r in rows)


def test_a_rolled_back_item_stays_out():
    failure = [row("constraint_violation", "refund")]
    first, _ = step(failure)
    second, rows = roll_back(first, [first.items[0].id], "hurts by 0.1", "r1")
    assert [(r["action"], r["reason"]) for r in rows] == [("rollback", "hurts by 0.1")]
    assert not second.active and second.items[0].status == "rolled_back"
    assert not step(failure, second, round_id="r2")[0].active


def test_a_smaller_budget_retires_the_youngest():
    both = [row("argument_mismatch", "refund", "reason"), row("constraint_violation", "discount")]
    first, _ = step(both)
    second, rows = step(both, first, round_id="r2", token_budget=4)
    assert sum(count_words(item.text) for item in second.active) <= 4
    assert "over the token budget" in {r["reason"] for r in rows}


def test_fixed_interfaces_ignore_the_profile():
    failure = [row("constraint_violation", "refund")]
    evolved, _ = step(failure)
    state, rows = step(failure, evolved, round_id="r2", interface="none")
    assert not state.items and [r["action"] for r in rows] == ["retire"]
    state, _ = step([], interface="static")
    assert texts(state) == texts(static(FACTS)) and len(state.active) == 5
    again, rows = step(failure, state, round_id="r2", interface="static")
    assert again == state and {r["action"] for r in rows} == {"keep"}
    assert texts(step([], interface="published")[0]) == texts(published(FACTS))
    kept, rows = step([], evolved, round_id="r2", interface="kept")
    assert kept == evolved and {r["action"] for r in rows} == {"keep"}
    with pytest.raises(ParamError, match="magic"):
        step([], interface="magic")
    with pytest.raises(ParamError, match="charm"):
        step([], kinds=["charm"])


def test_published_marks_and_allowed_values_only():
    marks = texts(published(FACTS))
    assert ("refund.order", "[required]") in marks and ("refund.reason", "one of K1 K3") in marks
    assert {text for _, text in marks} == {"[required]", "one of K1 K3"}


def test_random_cues_are_true_words_at_wrong_places():
    tokens = sum(count_words(item.text) for item in static(FACTS).items)
    state = random_items(FACTS, tokens, 7)
    assert state == random_items(FACTS, tokens, 7) != random_items(FACTS, tokens, 8)
    assert {item.text for item in state.items} <= {item.text for item in static(FACTS).items}
    assert not texts(state) & texts(static(FACTS))
    assert sum(count_words(item.text) for item in random_items(FACTS, 6, 7).items) <= 6


LABELS = st.sampled_from(sorted(FAILURES | {Label.PASS}))
ROWS = st.builds(
    row,
    LABELS,
    st.sampled_from(["find", "hold", "refund", "discount", "verify", ""]),
    st.sampled_from(["", "order", "reason", "shipment"]),
    st.integers(1, 9),
    st.floats(0.05, 1.0),
    st.sampled_from(["base", "miss_param"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, max_size=8), st.lists(ROWS, max_size=8), st.integers(0, 30), st.integers(0, 5))
def test_laws_of_evolution(first, second, budget, max_new):
    params = {"token_budget": budget, "max_new": max_new, "min_support": 1, "kinds": KINDS}
    a, _ = evolve(InterfaceState(), first, FACTS, [VERIFY_FIRST], params, "r1")
    shuffled, _ = evolve(InterfaceState(), first[::-1], FACTS, [VERIFY_FIRST], params, "r1")
    assert a == shuffled, "the order of profile rows does not matter"
    b, rows = evolve(a, second, FACTS, [VERIFY_FIRST], params, "r2")
    for state in (a, b):
        assert sum(count_words(item.text) for item in state.active) <= budget
        assert len({(i.where, i.target, i.text) for i in state.active}) == len(state.active)
        assert {item.kind for item in state.items} <= set(KINDS)
    assert sum(r["action"] == "add" for r in rows) <= max_new
    assert {i.id for i in a.active} == {r["item"] for r in rows if r["action"] in ("keep", "retire")}
    assert {i.id for i in b.active} == {r["item"] for r in rows if r["action"] in ("keep", "add")}


def played(task, dropped, success, mode="full"):
    return {"task_id": task, "mode": mode, "dropped": dropped, "success": success}


def test_uplift_compares_within_tasks():
    state, _ = step([row("constraint_violation", "refund")])
    id_ = state.items[0].id
    rows = [played(f"t{i}", "", 1) for i in range(4)] + [played(f"t{i}", id_, 0) for i in range(4)]
    rows += [played("t0", "", 0, mode="off")] * 9 + [played("lone", id_, 1)]
    (found,) = uplifts(rows, state)
    assert (found["uplift"], found["low"], found["high"]) == (1.0, 1.0, 1.0)
    assert (found["n_with"], found["n_without"], found["tasks"]) == (4, 5, 4)
    mixed = [played(f"t{i}", dropped, i % 2) for i in range(4) for dropped in ("", id_)]
    assert uplifts(mixed, state)[0]["uplift"] == 0.0


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


def test_items_of_tools_not_in_the_docs_change_nothing():
    state = static(FACTS)
    other = (ToolDoc("elsewhere", "x", (Param("order"),)),)
    assert render(other, state) == other


def test_params_may_be_the_typed_ones_and_plain_kinds_are_the_default():
    profile = [row("spurious_tool_call"), row("constraint_violation", "refund")]
    state, _ = evolve(EMPTY, profile, FACTS, (), EvolveParams(), "r1")
    assert texts(state) == {("refund", "after verify")}
