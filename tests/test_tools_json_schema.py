"""JSON schemas as tools write them: what is odd is mended, what is illegal is told, and every check says the same."""

import json
import time

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.core.types import Call
from seal.diagnose.messages import conversation
from seal.diagnose.schema import schema_faults
from seal.diagnose.without_gold import diagnose_log
from seal.policy.chat import describe
from seal.tools.docs import tool_doc
from seal.tools.json_schema import fault, violations

LINE = {
    "type": "object",
    "properties": {"sku": {"type": "string"}, "qty": {"type": "integer", "minimum": 1}},
    "required": ["sku"],
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
LEAVES = st.sampled_from(
    [True, {}, {"type": "string"}, {"type": ["integer", "null"]}, {"enum": ["x", 1, None]}, {"const": 2}]
    + [{"type": "number", "maximum": 1}, {"$ref": "#/$defs/D"}, {"type": "string", "pattern": "^[a-z]+$"}]
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda i: {"type": "array", "items": i}, inner),
        st.builds(lambda p, a: {"type": "object", "properties": p, "additionalProperties": a},
                  st.dictionaries(st.sampled_from("abc"), inner, max_size=3), inner | st.just(False)),
        st.builds(lambda key, parts: {key: parts}, st.sampled_from(["anyOf", "oneOf", "allOf"]),
                  st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=6,
)  # fmt: skip
WORDS = st.sampled_from(
    ["properties", "$ref", "type", "enum", "anyOf", "items", "required", "pattern", "$defs", "#/x", "object", "const"]
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


def of(**properties) -> dict:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "array", "items": LINE}, "list[{sku, qty?: int 1..}]"),
        ({"$ref": "#/$defs/Line"}, "{sku, qty?: int 1..}"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, "list[a|b]"),
        ({"oneOf": [{"type": "string"}, {"$ref": "#/$defs/Line"}]}, "str|{sku, qty?: int 1..}"),
        ({"allOf": [{"$ref": "#/$defs/Line"}]}, "{sku, qty?: int 1..}"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "int"),
        ({"type": ["null", "integer"]}, "null|int"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "{any: int}"),
        ({"type": "array", "prefixItems": [{"type": "number"}, {"type": "boolean"}]}, "[num, bool]"),
        ({"type": "string", "format": "date"}, "str date"),
        ({"type": "string", "pattern": "^C[0-9]$"}, "str /^C[0-9]$/"),
        ({"$ref": "#/$defs/Tree"}, "{kids?: list[Tree]}"),
        ({"type": "object"}, "dict"),
        ({"type": "integer"}, "int"),
        ({"enum": ["a", "b"]}, "a|b"),
    ],
)
def test_a_parameter_is_shown_in_full(schema, shown):
    tree = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}}
    doc = tool_doc("put", "", {**of(x=schema), "$defs": {"Line": LINE, "Tree": tree}})
    assert describe(doc, 8) == f"put(x?: {shown})"


@pytest.mark.parametrize("schema", [True, None, {}, {"$ref": "#/$defs/none"}, {"$ref": "http://x.invalid/y"}])
def test_a_parameter_without_a_rule_takes_anything(schema):
    whole = of(x=schema)
    assert not fault(whole) and describe(tool_doc("put", "", whole), 8) == "put(x?)"
    assert all(not violations(whole, {"x": value}) for value in (1, "a", None, [{}], {"a": 1}))


@pytest.mark.parametrize("schema", [{"properties": None, "required": None}, {"type": "object"}, {}])
def test_a_tool_without_parameters_is_called_without_any(schema):
    assert not fault(schema) and not violations(schema, {}) and not tool_doc("now", "", schema).params


@pytest.mark.parametrize(
    "schema",
    [of(a=5), of(a={"type": "float"}), of(a={"required": True}), {"type": "string"}, [], "x", {"required": "a"}]
    + [json.loads('{"properties": {"a": ' + '{"items": ' * 900 + "{}" + "}" * 900 + "}}")],
)
def test_an_illegal_schema_is_told_in_few_words(schema):
    assert 0 < len(fault(schema)) <= 300 and not violations(schema, {"a": 1})


@pytest.mark.parametrize(
    ("pattern", "right", "wrong"),
    [(r"^(?<y>[0-9]+)$", "12", "x"), (r"^\p{L}+$", "é", "1"), (r"^[a-z]+$", "a", "A"), ("(", "a", None)],
)
def test_patterns_of_other_dialects(pattern, right, wrong):
    schema = of(x={"type": "string", "pattern": pattern})
    assert not fault(schema) and not violations(schema, {"x": right})
    assert wrong is None or violations(schema, {"x": wrong})[0].path == ("x",)


def test_a_pattern_that_never_ends_is_no_rule():
    start = time.process_time()
    assert not violations(of(x={"pattern": "^(a|aa)+$"}), {"x": "a" * 5000 + "!"})
    assert time.process_time() - start < 3


@settings(max_examples=150, deadline=None)
@given(parameter=SCHEMAS, value=VALUES)
def test_calls_are_checked_as_the_library_checks_them(parameter, value):
    schema = {**of(x=parameter), "$defs": {"D": {"type": "array", "items": {"type": "boolean"}}}}
    arguments = {"x": value}
    legal = jsonschema.Draft202012Validator(schema).is_valid(arguments)
    assert legal == (not violations(schema, arguments))
    assert legal == (not schema_faults(Call("f", arguments), tool_doc("f", "", schema)))


@settings(max_examples=300, deadline=None)
@given(schema=st.dictionaries(WORDS, JUNK, max_size=4), value=VALUES)
def test_no_schema_raises(schema, value):
    doc = tool_doc("f", "", schema)
    describe(doc, 8), fault(schema), violations(schema, {"x": value}), schema_faults(Call("f", {"x": value}), doc)


def test_references_that_multiply_are_bounded():
    defs = {f"D{i}": of(a={"$ref": f"#/$defs/D{i + 1}"}, b={"$ref": f"#/$defs/D{i + 1}"}) for i in range(40)}
    start = time.process_time()
    told = describe(tool_doc("f", "", {**of(x={"$ref": "#/$defs/D0"}), "$defs": defs | {"D40": LINE}}), 8)
    assert len(told) < 5000 and time.process_time() - start < 2


def test_a_log_is_checked_down_to_the_nested_field():
    tool = {"name": "act", "parameters": {**of(q=LINE), "required": ["q"]}}
    call = {"id": "c1", "type": "function", "function": {"name": "act", "arguments": '{"q": {"qty": 1}}'}}
    talk = [{"role": "user", "content": "do"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    talk += [{"role": "tool", "tool_call_id": "c1", "content": "Error: something went wrong"}]
    talk += [{"role": "assistant", "content": "Done."}]
    first = diagnose_log(conversation({"messages": talk, "tools": [{"type": "function", "function": tool}]}))[0]
    assert (first.label, first.detail, first.parameter) == ("argument_mismatch", "type", "q")
