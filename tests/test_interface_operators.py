"""One test per operator: fact, orders order, error kind or label to the exact text a policy reads."""

import json
from pathlib import Path

import pytest

from seal.core.labels import FAILURES
from seal.core.types import CUE_KINDS, ERROR_KINDS, Call, Fact, Order, Param, ToolDoc
from seal.evolve.candidates import WEIGHTS
from seal.interface import wording
from seal.interface.placeholders import PLACEHOLDER, PLACEHOLDERS, Failure, fill
from seal.tools.fact_texts import FACT_TEXTS
from seal.tools.prose import enum_in_text, enum_of
from seal.tools.schema import fits


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("required", True, "required"),
        ("required", False, "optional"),
        ("type", "integer", "integer"),
        ("enum", {"late": "K1", "damaged": "K3"}, "damaged K3 late K1"),
        ("enum", ["START", "STOP"], "one of START STOP"),
        ("enum", 'The mode. [Enum]: ["START", "STOP"]', "one of START STOP"),
        ("enum", ["New York", "Rome"], "one of New York, Rome"),
        ("format", "ORD-", "starts ORD-"),
        ("format", "YYYY-MM-DD", "format YYYY-MM-DD"),
        ("needs", ["verify"], "after verify"),
        ("needs", ["a", "b"], "after a after b"),
        ("role", ["approve"], "requires approve"),
        ("returns", ["shipment"], "returns shipment="),
        ("purpose", "cancel an order", "cancel an order"),
        ("purpose", "A shop. Tool description: Cancel an order. It is final.", "Cancel an order"),
        ("range", ["1", "5"], "from 1 to 5"),
        ("unit", "miles", "in miles"),
        ("default", 10, "default 10"),
        ("default", False, "default false"),
        ("sibling", {"mv": "Move a file"}, "mv is for: Move a file"),
        ("example", "find order=<string>", "call as find order=<string>"),
    ],
)
def test_note_of_a_fact(kind, value, text):
    param = "p" if kind in ("required", "type", "enum", "format", "range", "unit", "default") else ""
    cue = wording.note(Fact("tool", param, kind, value))
    assert (cue.kind, cue.where, cue.text) == (kind, "docs", text)
    assert cue.target == ("tool.p" if param else "tool")


def test_a_fact_with_nothing_to_tell_has_no_note():
    assert wording.note(Fact("t", "p", "enum", [])) is None
    assert wording.note(Fact("t", "", "returns", [])) is None
    assert wording.note(Fact("t", "p", "enum", "any text at all")) is None


@pytest.mark.parametrize("end", ["\n", "\r", "\u2028", "\x00"])
def test_a_fact_that_fits_into_no_line_has_no_note(end):
    fact = Fact("default", "join", "sep", f"a{end}b")
    assert wording.note(fact) is wording.recovery(fact) is None


def test_recovery_repeats_the_note_under_the_parameter():
    assert wording.recovery(Fact("t", "reason", "enum", {"late": "K1"})).text == "reason= late K1"
    assert wording.recovery(Fact("t", "", "needs", ["verify"])).text == "after verify"
    assert wording.recovery(Fact("t", "", "purpose", "x")) is None


def test_mined_order():
    assert wording.order(Order("refund", "verify", "precondition", 4, 0, 0.6)).text == "after verify"
    assert wording.order(Order("refund", "approve", "permission", 4, 0, 0.6)).text == "requires approve"


def test_a_learned_order_carries_its_counts_and_is_told_after_a_refusal():
    orders = Order("refund", "verify", "precondition", 4, 1, 0.6)
    assert wording.order(orders).counts == "refused until verify succeeded 4 times, fine without it 1 times"
    cue = wording.recovery_order(orders)
    assert (cue.kind, cue.target, cue.where) == ("recover_order", "refund", "feedback")
    assert cue.text == "verify must succeed first"


def test_kinds_are_those_of_facts_and_then_those_of_the_other_operators():
    others = {k for name, k in vars(wording).items() if name.endswith("_KIND")}
    assert (*FACT_TEXTS, *CUE_KINDS[len(FACT_TEXTS) :]) == CUE_KINDS and {*CUE_KINDS[len(FACT_TEXTS) :]} == others
    assert set(WEIGHTS) == set(CUE_KINDS) and set(wording.PLAIN_KINDS) < set(CUE_KINDS)
    assert wording.order(Order("a", "b", "precondition", 1, 0, 0.5)).kind == "order"
    assert wording.call_format("words").kind == "call_format" and wording.recover_any("other").kind == "recover_any"
    assert wording.guidance("missing_tool_call").kind == "guidance"


def test_every_error_kind_has_a_template_with_known_slots():
    assert set(wording.RECOVERY_TEMPLATES) == {*ERROR_KINDS, "loop"}
    used = {name for text in wording.RECOVERY_TEMPLATES.values() for name in PLACEHOLDER.findall(text)}
    assert used <= set(PLACEHOLDERS)
    assert wording.recover_any("no such kind") is None


def test_every_failure_has_guidance_and_every_format_an_example():
    assert all(wording.guidance(label) for label in FAILURES) and wording.guidance("pass") is None
    assert wording.call_format("words").text == "call as name key=value"
    assert wording.call_format("morse") is None


DOCS = (
    ToolDoc("book", "book", (Param("city"), Param("seats", "integer"), Param("tier", enum=("gold", "tin")))),
    ToolDoc("list_all_cities", "list", ()),
    ToolDoc("get_city_by_name", "get", (Param("name"),)),
    ToolDoc("close", "close", (Param("city", required=False),)),
)


def filled(template, call, kind, raw="error"):
    return fill(template, Failure(call, kind, raw, DOCS))


def test_slots_name_what_is_missing_wrong_or_near():
    call = Call("book", {"city": "Rome", "seats": "two", "tier": "lead"})
    assert filled("required {missing}", Call("book", {"city": "Rome"}), "missing_argument") == "required seats= tier="
    assert filled("takes {params}", call, "unexpected_argument") == "takes only city= seats= tier="
    assert filled("takes {params}", Call("list_all_cities", {"a": 1}), "unexpected_argument") == "takes no arguments"
    assert filled("{types}", call, "wrong_type") == "seats= integer"
    assert filled("{allowed}", call, "invalid_value", "bad tier") == "tier= one of gold tin"
    assert filled("tools {nearest}", Call("bok", {}), "unknown_tool") == "tools book"
    assert filled("see {lookup}", call, "not_found", "no such city") == "see get_city_by_name list_all_cities"


def test_who_is_logged_in_is_no_place_to_look_something_up():
    docs = tuple(ToolDoc(name, "") for name in ("get_user_login_status", "get_user_id", "book"))
    failure = Failure(Call("book", {"user": "7"}), "not_found", "no such user", docs)
    assert fill("see {lookup}", failure) == "see get_user_id"


def test_a_template_with_an_empty_slot_is_silent():
    assert filled("required {missing}", Call("close", {}), "missing_argument") == ""
    assert filled("tools {nearest}", Call("zzzzzzzz", {}), "unknown_tool") == ""
    assert filled("{allowed}", Call("nowhere", {}), "invalid_value") == ""


def names(params):
    return tuple(param.name for param in params)


def test_failing_params_by_name_then_by_kind():
    call = Call("book", {"city": "Rome", "seats": "two", "tier": "gold"})
    assert names(Failure(call, "invalid_value", "error invalid tier=", DOCS).blamed) == ("tier",)
    assert names(Failure(call, "wrong_type", "error", DOCS).blamed) == ("seats",)
    assert names(Failure(call, "other", "error", DOCS).blamed) == ()


@pytest.mark.parametrize(
    ("value", "json_type", "does"),
    [
        (1, "integer", True),
        (True, "integer", False),
        (True, "boolean", True),
        (1, "boolean", False),
        (1, "number", True),
        ("1", "number", False),
        ([1], "array", True),
        ({}, "dict", True),
        (object(), "anything", True),
    ],
)
def test_types(value, json_type, does):
    assert fits(value, json_type, exact=True) is does


@pytest.mark.parametrize(
    ("description", "values"),
    [
        ("The target currency. [Enum]: USD, RMB, EUR", ("USD", "RMB", "EUR")),
        ("The class of the travel. Options are: economy, business, first.", ("economy", "business", "first")),
        ("The grant type. Here are the options: read_write, read, write", ("read_write", "read", "write")),
        ('The unit. [Enum]: ["celsius", "fahrenheit"]. Defaults to celsius', ("celsius", "fahrenheit")),
        ("[Enum]: [broken", ()),
        ("Options are many, as you will see", ()),
        ("No values here", ()),
    ],
)
def test_allowed_values_told_in_prose(description, values):
    assert enum_in_text(description) == values


def interface_cases():
    cases = map(json.loads, (Path(__file__).parent / "cases.jsonl").read_text().splitlines())
    return [case for case in cases if case["kind"] == "interface" and "spec" in case["input"]]


@pytest.mark.parametrize("case", interface_cases(), ids=lambda case: case["id"])
def test_handed_cases_of_allowed_values(case):
    spec = case["input"]["spec"]
    param = Param(case["input"]["param"], spec["type"], description=spec["description"])
    assert list(enum_of(param)) == case["expected"]["allowed_values"]
    cue = wording.note(Fact(case["input"]["tool"], param.name, "enum", spec["description"]))
    assert cue.text == f"one of {' '.join(case['expected']['allowed_values'])}"
