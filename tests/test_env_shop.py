"""The built-in shop: its gold programs run, its rules hold, its splits share nothing, its words are all known."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.core.types import Call
from seal.env.domain import facts_of
from seal.env.domain_tasks import CATEGORIES
from seal.env.shop import SHOP, ShopEnv

ENV = ShopEnv()


def test_every_gold_call_succeeds():
    for task in ENV.tasks():
        session = ENV.open(task)
        for turn in task.turns:
            for call in turn.gold:
                assert session.call(call).error_kind == "", (task.task_id, call)


def test_four_categories_a_scenario_and_no_scenario_in_two_splits():
    splits: dict[str, set[str]] = {}
    for task in ENV.tasks():
        splits.setdefault(task.scenario_id, set()).add(task.split)
    assert all(len(found) == 1 for found in splits.values())
    assert Counter(task.category for task in ENV.tasks()) == dict.fromkeys(CATEGORIES, len(splits))
    assert Counter(next(iter(s)) for s in splits.values()) == {"train": 60, "dev": 15, "test": 50}


def test_withheld_tools_are_hidden_until_their_turn_and_then_revealed():
    for task in ENV.tasks():
        for tool, turn in task.holdout.items():
            assert tool not in {doc.name for doc in ENV.docs(task, turn - 1)}
            assert tool in {doc.name for doc in ENV.revealed(task, turn)}
            assert tool in {call.name for call in task.turns[turn].gold}
            assert not task.turns[turn - 1].gold


def test_a_missing_value_is_not_in_the_message_and_comes_one_turn_later():
    for task in ENV.tasks():
        if task.category != "miss_param":
            continue
        (vague,) = [i for i, turn in enumerate(task.turns) if not turn.gold]
        value = task.turns[vague + 1].message.removeprefix("it is ")
        assert value not in task.turns[vague].message.split()
        assert task.turns[vague + 1].gold


def test_tasks_are_a_function_of_the_seed():
    assert ShopEnv(seed=3).tasks() == ShopEnv(seed=3).tasks()
    assert ShopEnv(seed=3).tasks() != ShopEnv(seed=4).tasks()


def test_at_least_ten_tools_and_thirty_five_hidden_facts():
    hidden = [fact for tool in SHOP.tools for fact in facts_of(tool) if not fact.documented]
    count = sum(len(fact.value) if fact.kind == "enum" else 1 for fact in hidden)
    assert len(SHOP.tools) >= 10
    assert count == 35


@pytest.mark.parametrize(
    ("call", "text", "kind"),
    [
        (Call("fly", {}), "error unknown tool", "unknown_tool"),
        (Call("issue_refund", {"order": "ORD-{id}"}), "error missing reason=", "missing_argument"),
        (Call("stop_order", {"order": "EU-{id}", "reason": "K1"}), "error unexpected reason=", "unexpected_argument"),
        (Call("stop_order", {"order": "{id}"}), "error invalid order=", "invalid_value"),
        (Call("stop_order", {"order": "EU-999"}), "error not found order=", "not_found"),
        (Call("stop_order", {"order": 7}), "error invalid order=", "wrong_type"),
        (Call("issue_refund", {"order": "ORD-{id}", "reason": "damaged"}), "error invalid reason=", "invalid_value"),
        (Call("issue_refund", {"order": "ORD-{id}", "reason": "K3"}), "error refused", "precondition"),
        (Call("give_discount", {"order": "{id}", "tier": "K8"}), "error denied", "permission"),
    ],
)
def test_each_rule_refuses_in_its_own_words(call, text, kind):
    task = ENV.tasks()[0]
    order = next(iter(task.initial_state["entities"]["order"]))
    arguments = {k: v.format(id=order) if isinstance(v, str) else v for k, v in call.arguments.items()}
    session = ENV.open(task)
    result = session.call(Call(call.name, arguments))
    assert (result.raw, result.error_kind) == (text, kind)
    assert session.state() == {}


@settings(max_examples=200, deadline=None)
@given(
    st.text(max_size=12),
    st.dictionaries(
        st.sampled_from(["order", "reason", "x"]), st.one_of(st.none(), st.integers(), st.text(max_size=5)), max_size=3
    ),
)
def test_no_call_raises_and_no_error_changes_state(name, arguments):
    for tool in (name, "issue_refund"):
        session = ENV.open(ENV.tasks()[0])
        if session.call(Call(tool, arguments)).error_kind:
            assert session.state() == {}
