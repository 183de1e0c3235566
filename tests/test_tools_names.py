"""Names that MCP allows and Python does not: written, read back and called as they are, in every format."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.core.errors import ParamError
from seal.core.types import Call, Param, ToolDoc
from seal.tools.carried import check_names
from seal.tools.names import marked
from seal.tools.parse import READERS, format_calls, parse

NAMES = ("github/create_issue", "get-weather", "calendar.respond", "3d", "größe", "-list", "ﬁle", "class", "a:b")
KEYS = ("from", "reply-to", "$filter", "in", "3rd", "straße")
MCP_NAME = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_./-]{0,63}", fullmatch=True)
JSON_FORMATS = ("qwen_xml", "llama_json", "openai")


def doc(name: str, keys=KEYS) -> ToolDoc:
    return ToolDoc(name, "", tuple(Param(key) for key in keys))


@pytest.mark.parametrize("mode", ["strict", "lenient"])
@pytest.mark.parametrize("format", sorted(READERS))
@pytest.mark.parametrize("name", NAMES)
def test_a_call_by_any_name_is_read_back(name, format, mode):
    calls = (Call(name, dict.fromkeys(KEYS, "x")), Call(name, {}))
    assert parse(format_calls(calls, format), format, [doc(name)], mode).calls == calls
    check_names([doc(name)], format)


@settings(max_examples=100, deadline=None)
@given(name=MCP_NAME, key=MCP_NAME, text=st.text(max_size=30), format=st.sampled_from(["pythonic", "qwen_xml"]))
def test_mcp_names_beside_any_text(name, key, text, format):
    call = Call(name, {key: text if format == "pythonic" else "x"})
    assert parse(format_calls((call,), format), format, [doc(name, (key,))]).calls == (call,)


def test_names_are_read_without_a_schema_too():
    for name in ("get-x", "cal.get", "github/create_issue"):
        call = Call(name, {"from": "a-b(1)=", "reply-to": "it's", "$filter": 'get-x(a="'})
        for format in ("pythonic", *JSON_FORMATS):
            assert parse(format_calls((call,), format), format).calls == (call,)


def test_a_schema_says_which_names_there_are():
    parsed = parse("[get-x(a=1)]", "pythonic", {"get": ["a"]})
    assert not parsed.calls and parsed.end_of_turn  # as officially
    assert parse("[get-x(a='get-x(a=')]", "pythonic", {"get-x": ["a"]}).calls == (Call("get-x", {"a": "get-x(a="}),)
    assert parse("[get-x(1)]", "pythonic", {"get-x": ["from"]}).calls == (Call("get-x", {"from": 1}),)


def test_text_that_is_no_name_stays_a_bad_name():
    for name in ("", "get weather", "f(x)", 'a"b', "a\nb"):
        parsed = parse(format_calls((Call(name, {}),), "openai"), "openai")
        assert [error.kind for error in parsed.errors] == ["bad_name"]


@pytest.mark.parametrize(("name", "format"), [("two words", "qwen_xml"), ("two words", "words"), ("a(b)", "pythonic")])
def test_a_name_that_a_format_cannot_carry_is_one_error(name, format):
    with pytest.raises(ParamError, match=rf"call format {format}: {re.escape(name)}\(from(?s:.*)rename it"):
        check_names([doc("fine"), doc(name)], format)
    with pytest.raises(ParamError, match="a b"):
        check_names([doc("fine", ("a b",))], "words")
    check_names([doc("fine", ("a b",))], "openai")


@pytest.mark.parametrize("piece", ["'''", "\\'''", '"', "a ", "a-b(", "a-b =", "'\\", " ", "_", "\n'"])
def test_looking_for_names_takes_linear_time(piece):
    import time

    text, start = piece * (1_000_000 // len(piece)), time.process_time()
    marked(text, {"a-b": {"c-d": ""}})
    assert time.process_time() - start < 2
