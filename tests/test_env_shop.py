"""The built-in shop: its rules hold in their own words, and its tasks are what they were."""

import hashlib
import json

import pytest

from seal.core.types import Call
from seal.env.domain import facts_of
from seal.env.shop import SHOP, ShopEnv

ENV = ShopEnv()


def test_its_tasks_are_those_of_the_published_results():
    told = [
        [t.task_id, t.category, t.scenario_id, t.split, t.initial_state, t.toolset, t.holdout]
        + [[turn.message, [[call.name, call.arguments] for call in turn.gold]] for turn in t.turns]
        for t in ENV.tasks()
    ]
    digest = hashlib.sha256(json.dumps(told).encode()).hexdigest()
    assert digest == "b835dfa4594874cb5ac33e85b7b2ea9f5620508893a654988d67113618500616"


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
