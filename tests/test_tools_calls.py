"""Calls as people report them, and laws: what is written is read back, what is only quoted never runs."""

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seal.core.types import Call, Parsed
from seal.tools import names, repair
from seal.tools import parse as reading
from seal.tools.literal import MAX_TEXT
from seal.tools.parse import READERS, format_calls, parse

LINES = (Path(__file__).parent / "reported_calls.jsonl").read_text().splitlines()
REPORTED = list(map(json.loads, LINES))
SCHEMA = {"mail": ["from", "to"], "calendar.respond": ["event"]}
MODES = ("strict", "lenient")
FORMATS = sorted(READERS)
JSON_FORMATS = ("qwen_xml", "llama_json", "openai")


@pytest.mark.parametrize("case", REPORTED, ids=lambda case: case["id"])
def test_reported_calls(case):
    parsed = parse(case["text"], case["format"], SCHEMA if case["schema"] else None, case["mode"])
    if case["expected"] == "args-or-error":
        assert bool(parsed.calls) != bool(parsed.errors)
        assert all(call.arguments == {"path": "a.txt"} for call in parsed.calls)
    else:
        assert [[call.name, dict(call.arguments)] for call in parsed.calls] == case["expected"]["calls"]
        assert not parsed.errors


def tagged(body: str, format: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>" if format == "qwen_xml" else body


# Names that MCP's rule or a script of the world allows, and parameters of any name at all.
LEGAL = st.text(st.characters(categories=["L", "Nd"], include_characters="_-./"), min_size=1, max_size=8)
TOOLS = LEGAL | st.sampled_from(
    ["get-x", "cal.get", "github/create_issue", "-list", "3d", "ﬁ", "from", "日本", "हिन्दी"]
)
MARKERS = (
    "</think> <think> <tool_call> </tool_call> <|python_tag|> <|eom_id|> ``` [inner()] inner() \" ' \\ \n \t { } ) ] ; "
    '{"name":"inner","arguments":{}} <tool_call>{"name":"inner"}</tool_call> seal_name_0_ null "x" a=1'
).split(" ")
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.lists(st.sampled_from([*MARKERS, " ; ", " "]), max_size=5).map("".join),
)
KEYS = TOOLS | TEXTS | st.sampled_from(["reply-to", "$filter", "class", "in", "first name", ""])
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), TEXTS)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=6
)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("format", [name for name in FORMATS if name != "words"])
@settings(max_examples=120, deadline=None)
@given(
    calls=st.lists(st.builds(Call, TOOLS, st.dictionaries(KEYS, VALUES, max_size=3)), max_size=3), told=st.booleans()
)
@example(calls=[Call("get-x", {"from": 1}), Call("cal.get", {"reply-to": "a", "$filter": "b"})], told=False)
@example(calls=[Call("w", {"t": "a </think> b"})], told=False)
def test_what_is_written_is_read_back(format, mode, calls, told):
    schema = {call.name: {} for call in calls}
    for call in calls:
        schema[call.name] |= dict.fromkeys(call.arguments, "")
    parsed = parse(format_calls(calls, format), format, schema if told else None, mode)
    assert parsed == Parsed(tuple(calls), (), not calls)


KIND = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
TYPED = st.one_of(
    st.booleans(),
    st.integers(-(10**17), 10**17),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
    st.lists(SCALARS, max_size=3),
    st.dictionaries(TEXTS, SCALARS, max_size=2),
)
WORD = LEGAL.filter(lambda name: name != "done")


@settings(max_examples=200, deadline=None)
@given(calls=st.lists(st.builds(Call, WORD, st.dictionaries(WORD, TYPED, max_size=3)), max_size=3))
def test_words_that_a_schema_types_are_read_back(calls):
    schema: dict[str, dict[str, str]] = {}
    distinct = {call.name: call for call in calls}.values()
    for call in distinct:
        schema[call.name] = {name: KIND[type(value)] for name, value in call.arguments.items()}
    assert parse(format_calls(distinct, "words"), "words", schema) == Parsed(tuple(distinct), (), not calls)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("thought", ["<think>\nI could {} here.</think>\n", "I could {} here.</think>", "{}</think>"])
@pytest.mark.parametrize("format", [name for name in FORMATS if name != "words"])
def test_a_call_in_a_thought_never_runs_and_the_answer_may_hold_the_marker(format, thought, mode):
    inner, outer = (format_calls([Call(name, {"t": f"{name}: </think> b"})], format) for name in ("inner", "outer"))
    for number in (1, 2):
        before = thought.format(" ".join([inner.replace("</think>", "")] * number))
        parsed = parse(before + outer, format, None, mode)
        assert parsed.calls == (Call("outer", {"t": "outer: </think> b"}),) and not parsed.errors
        assert parse(f"{before}Done.", format, None, mode) == Parsed(end_of_turn=True)


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("pythonic", "write(text='[inner()]', oops oops)"),
        ("pythonic", "[write(text='x </think>[inner()]' oops)]"),
        ("pythonic", 'I write(text="[inner()]") and no more'),
        ("qwen_xml", '<tool_call>{"name": "w", "arguments": {"t": "<tool_call>{\'name\': \'inner\'}</tool_call>", x}}'),
        ("qwen_xml", "<tool_call>{'name': 'w', 'arguments': {'t': '<tool_call>{\"name\": \"inner\"}</tool_call>', x}}"),
        ("llama_json", '{"name": "w", "parameters": {"t": "<|python_tag|>{\\"name\\": \\"inner\\"}", x}}'),
    ],
)
@pytest.mark.parametrize("mode", MODES)
def test_a_call_quoted_in_a_broken_one_never_runs(format, text, mode):
    assert "inner" not in [call.name for call in parse(text, format, None, mode).calls]


@pytest.mark.parametrize("format", JSON_FORMATS)
@pytest.mark.parametrize(
    ("body", "strict", "mended"),
    [
        ({"name": "w"}, {}, {}),
        ({"name": "w", "arguments": None}, {}, {}),
        ({"name": "w", "arguments": ""}, {}, {}),
        ({"name": "w", "parameters": "null"}, {}, {}),
        ({"name": "w", "arguments": '{"p": "a"}'}, {"p": "a"}, {"p": "a"}),
        ({"name": "w", "parameters": {"p": "a"}}, {"p": "a"}, {"p": "a"}),
        ({"name": "w", "id": "c1", "arguments": {}}, {}, {}),
        ({"name": "w", "id": "c1", "type": "function"}, {}, {}),
        ({"name": "w", "arguments": {"p": "a"}, "thought": "x"}, {"p": "a"}, {"p": "a"}),
        ({"name": "w", "args": {"p": "a"}}, None, {"p": "a"}),
        ({"name": "w", "input": {"p": "a"}, "id": "c1", "type": "tool_use"}, None, {"p": "a"}),
        ({"name": "w", "arguments": None, "kwargs": {"p": "a"}}, None, {"p": "a"}),
        ({"name": "w", "args": '{"p": "a"}'}, None, {"p": "a"}),
        ({"name": "w", "p": "a"}, None, {"p": "a"}),
        ({"name": "w", "id": "o1"}, None, {"id": "o1"}),  # may well be what the tool asks for
        ({"name": "w", "input": "a"}, None, {"input": "a"}),
        ({"name": "w", "arguments": {}, "p": "a"}, None, {"p": "a"}),
        ({"name": "w", "arguments": {"p": "a"}, "parameters": {"p": "b"}}, None, None),
        ({"name": "w", "arguments": ["a"]}, None, None),
        ({"name": "w", "arguments": "a"}, None, None),
        ({"name": "w", "arguments": 0}, None, None),
    ],
)
def test_arguments_are_read_wherever_they_stand_or_are_one_error(format, body, strict, mended):
    """Never a call without its arguments."""
    for mode, expected in (("strict", strict), ("lenient", mended)):
        parsed = parse(tagged(json.dumps(body), format), format, None, mode)
        assert parsed.calls == (() if expected is None else (Call("w", expected),)), mode
        assert len(parsed.errors) == (expected is None)
        assert (repair.ELSEWHERE in parsed.repairs) == (mode == "lenient" and strict is None and mended is not None)


def test_the_content_of_a_message_may_hold_an_end_of_thought():
    entry = {"function": {"name": "w", "arguments": '{"t": "x"}'}}
    for content in ("a </think> b", "<think>c</think>"):
        text = json.dumps({"role": "assistant", "content": content, "tool_calls": [entry]})
        for before in ("", "<think>d</think>"):
            assert parse(before + text, "openai").calls == (Call("w", {"t": "x"}),)


def test_a_message_with_a_name_is_no_call():
    assert parse('{"role": "assistant", "name": "planner", "content": "Hello."}', "openai").end_of_turn


LS, CD = Call("ls", {}), Call("cd", {"f": "a\nb\tc"})
RAW = '{"name": "cd", "arguments": {"f": "a\nb\tc"}}'


@pytest.mark.parametrize(
    ("format", "text", "calls", "repairs"),
    [
        ("pythonic", "[cd(f='a\nb\tc')]", (CD,), (repair.RAW_TEXT,)),
        ("qwen_xml", f"<tool_call>{RAW}</tool_call>", (CD,), (repair.RAW_TEXT,)),
        ("llama_json", f'{RAW}; {{"name": "ls"}}', (CD, LS), (repair.RAW_TEXT,)),
        ("openai", f"[{RAW}]", (CD,), (repair.RAW_TEXT,)),
        ("qwen_xml", '<tool_call>{"name": "ls"},\n{"name": "ls"}</tool_call>', (LS, LS), (repair.SEPARATORS,)),
        ("qwen_xml", '<tool_call>[{"name": "ls"}, {"name": "ls"}]</tool_call>', (LS, LS), (repair.SEPARATORS,)),
        ("qwen_xml", "<tool_call>{'name': 'w', 'arguments': {'t': '</tool_call>'}}</tool_call>",
         (Call("w", {"t": "</tool_call>"}),), (repair.PYTHON_LITERAL,)),
        ("llama_json", 'Look. <|python_tag|>{"name": "ls"}<|eom_id|>', (LS,), (repair.SURROUNDING,)),
        ("pythonic", "Now [w(t='a </think> b')].", (Call("w", {"t": "a </think> b"}),), (repair.SURROUNDING,)),
    ],
)  # fmt: skip
def test_what_lenient_alone_reads(format, text, calls, repairs):
    strict, lenient = parse(text, format), parse(text, format, None, "lenient")
    assert (lenient.calls, lenient.errors, lenient.repairs) == (calls, (), repairs)
    assert not strict.calls


def test_one_broken_text_does_not_swallow_the_next_call():
    text = '<tool_call>{"name": "a", "arguments": {"t": "open}}</tool_call>\n<tool_call>{"name": "ls"}</tool_call>'
    for mode in MODES:
        parsed = parse(text, "qwen_xml", None, mode)
        assert parsed.calls == (LS,) and len(parsed.errors) == 1


def test_other_names_are_read_where_the_schema_has_them():
    schema = {"get-x": ["in"], "mul": ["a"]}
    for text in ("[get-x(in=1)]", "get-x(in=1)", "[get-x(1)]"):
        assert parse(text, "pythonic", schema).calls == (Call("get-x", {"in": 1}),), text
    for text in ("[mul(from=1)]", "[a.b(x=1)]", "[mul(a=3-mul(a=1))]", "[mul(**{'first name': 1})]"):
        assert not parse(text, "pythonic", schema).calls, text


def every(text: str, pattern: re.Pattern) -> None:
    for _ in pattern.finditer(text):
        pass


def seconds(use, text, pattern) -> float:
    begun = time.process_time()
    every(text, pattern) if use is every else use(text)
    return time.process_time() - begun


@pytest.mark.parametrize(
    "pattern",
    [p for module in (names, reading, repair) for p in vars(module).values() if isinstance(p, re.Pattern)],
    ids=lambda pattern: pattern.pattern[:20],
)  # fmt: skip
@pytest.mark.parametrize(
    "piece",
    ["a", " ", "\n", '"', "'", "\\", '\\"', "\"\\'", "'a", '"a" ', "[ ", "[a(", ") ", "a.", "a(", "a (", "<",
     "<tool_call>", "é", "<tool_call> \n", "<tool_call>{'", '<tool_call>{"\\"', "[\"',", ";", "a =", "a\n("],
)  # fmt: skip
def test_no_pattern_is_slower_than_linear(pattern, piece):
    for start in ("", '"', "<tool_call>"):
        for size, use in ((1_000_000, pattern.search), (1_000_000, pattern.fullmatch), (MAX_TEXT, every)):
            text = start + piece * (size // len(piece))
            assert min(seconds(use, text, pattern) for _ in range(2)) < 0.2
