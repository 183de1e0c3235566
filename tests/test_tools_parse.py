"""Reading calls: the handed cases, laws of all formats on any text, and what must never be read as a call."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seal.core.errors import ParamError
from seal.core.types import Call, Param, Parsed, ToolDoc
from seal.tools import repair
from seal.tools.error_kinds import error_kind
from seal.tools.parse import READERS, format_calls, parse
from seal.tools.schema import signature_of

LINES = (Path(__file__).parent / "cases.jsonl").read_text().splitlines()
CASES = [case for case in map(json.loads, LINES) if case["kind"] == "parser"]
FORMATS = sorted(READERS)


def as_case(parsed: Parsed) -> dict:
    return {
        "calls": [{"name": call.name, "args": dict(call.arguments)} for call in parsed.calls],
        "errors": len(parsed.errors),
        "end_of_turn": parsed.end_of_turn,
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_handed_cases(case):
    given, expected = case["input"], case["expected"]
    schema = given.get("schema") or given.get("signature")
    found = as_case(parse(given["text"], given["format"], schema))
    options = expected.get("one_of", [expected])
    keys = ("calls", "errors", "end_of_turn")
    assert any(all(found[key] == option[key] for key in keys if key in option) for option in options), found
    if expected.get("official_end_of_turn"):
        assert found["end_of_turn"] and not found["calls"]
    lenient = parse(given["text"], given["format"], schema, "lenient")
    if "lenient_calls" in expected:
        assert as_case(lenient)["calls"] == expected["lenient_calls"] and lenient.repairs
    if any(option.get("repaired") for option in options):
        wanted = next(option for option in options if option.get("repaired"))
        assert as_case(lenient)["calls"] == wanted["calls"] and not lenient.errors and len(lenient.repairs) == 1
    assert parse(given["text"], given["format"], schema).repairs == ()


SYNTAX = st.sampled_from(
    "[ ] ( ) { } , : ; = \" ' \\ / - + * ** . f x add name arguments parameters function tool_calls None nan 1e999 "
    "<tool_call> </tool_call> <|python_tag|> done ls() a=1 9 \n \t \0 é \ud800 lambda __import__('os')".split(" ")
)
TEXTS = st.one_of(st.text(max_size=80), st.lists(SYNTAX, max_size=25).map("".join))


@pytest.mark.parametrize(
    ("format", "texts", "said"),
    [
        (
            "pythonic",
            ["[f(1 2)]", "[f(a=1", "f(a=')", "f(x='\\ud8')", "[f(" + "(" * 300, "f(x=1__0)"],
            "not a Python expression",
        ),
        ("pythonic", ["f(x=" + "9" * 5000 + ")"], "not a Python expression"),
        ("llama_json", ['{"name": "f", "parameters": {"a": 1,}}', "{'name': 1}", "[" * 2000, "[1 2]"], "not JSON"),
        ("openai", ['[{"name": "f" "arguments": 1}]', "[", '{"name": "f", "arguments": "{1}"}'], "not JSON"),
        (
            "qwen_xml",
            ["<tool_call>{</tool_call>", "<tool_call></tool_call>", "<tool_call>{'a'}</tool_call>"],
            "not JSON",
        ),
        ("qwen_xml", ['<tool_call>{"name": "f", "arguments": {"a": ' + "9" * 5000 + "}}</tool_call>"], "not JSON"),
        ("qwen_xml", ['<tool_call>{"name": "f", "arguments": {"a": NaN}}</tool_call>'], "NaN is no JSON value"),
        ("llama_json", ['{"name": "f", "parameters": {"a": Infinity}}'], "Infinity is no JSON value"),
    ],
)
def test_what_a_syntax_error_says_are_our_own_words(format, texts, said):
    """Not the reader's, which hint at Python and change with its version."""
    for text in texts:
        assert [(error.kind, error.message) for error in parse(text, format).errors] == [("syntax", said)], text


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=80, deadline=None)
@given(text=TEXTS, mode=st.sampled_from(["strict", "lenient"]))
@example(text="(" * 3000, mode="strict")
@example(text="[" * 3000, mode="lenient")
@example(text="f(" + "-" * 5000 + "1)", mode="strict")
@example(text="<tool_call>" * 2000, mode="lenient")
@example(text='{"name": "f", "arguments": ' + '{"a":' * 60 + "1" + "}" * 61, mode="lenient")
@example(text="f(x=" + "9" * 5000 + ")", mode="strict")
@example(text="{}" * 20000, mode="strict")
@example(text="x" * 200_000, mode="strict")
def test_any_text_is_read_without_raising(format, text, mode):
    parsed = parse(text, format, {"add": ["a", "b"]}, mode)
    assert not (parsed.end_of_turn and parsed.calls)
    assert parsed.calls or parsed.errors or parsed.end_of_turn
    calls = [[call.name, dict(call.arguments)] for call in parsed.calls]
    told = [[error.kind, error.message] for error in parsed.errors]
    json.dumps([calls, told], allow_nan=False, ensure_ascii=False).encode()
    assert mode == "lenient" or not parsed.repairs


NAMES = st.from_regex(r"[a-z][a-zA-Z_]{0,8}", fullmatch=True).filter(
    lambda name: not __import__("keyword").iskeyword(name)
)
PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**12), 10**12),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.sampled_from(["</tool_call>", "<tool_call>{}", "\\u003c", 'it\'s "so"', "; done", "[ls()]", "<|eot_id|>"]),
)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc<", max_size=4), inner, max_size=3)
)
CALLS = st.lists(st.builds(Call, NAMES, st.dictionaries(NAMES, VALUES, max_size=3)), max_size=3)


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "words"])
@settings(max_examples=50, deadline=None)
@given(calls=CALLS)
def test_formatted_calls_are_read_back(format, calls):
    parsed = parse(format_calls(calls, format), format)
    assert parsed == Parsed(tuple(calls), (), not calls)


WORDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,8}", fullmatch=True)


@settings(max_examples=50, deadline=None)
@given(
    calls=st.lists(
        st.builds(Call, NAMES.filter(lambda n: n != "done"), st.dictionaries(NAMES, WORDS, max_size=3)), max_size=3
    )
)
def test_calls_in_words_are_read_back(calls):
    assert parse(format_calls(calls, "words"), "words") == Parsed(tuple(calls), (), not calls)


def test_words_are_typed_by_the_schema_and_left_alone_where_they_do_not_fit():
    doc = ToolDoc("f", "", (Param("n", "integer"), Param("x", "number"), Param("b", "boolean"), Param("s")))
    assert parse("f n=3 x=2 b=true s=4", "words", (doc,)).calls[0].arguments == {"n": 3, "x": 2.0, "b": True, "s": "4"}
    odd = {"n": "3.5", "x": "nan", "b": "yes", "s": "true"}
    assert parse("f n=3.5 x=nan b=yes s=true", "words", (doc,)).calls[0].arguments == odd
    assert parse("f n", "words", (doc,)).errors and not parse("f n", "words", (doc,)).end_of_turn


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[add(a=__import__('os').system('x')+1, b=2)]", "not_literal"),
        ("[add(a=1+1)]", "not_literal"),
        ("[add(a=[x for x in y])]", "not_literal"),
        ("[add(**{'a': 1})]", "not_literal"),
        ("[add(a=f'{x}')]", "not_literal"),
        ("[add(a=b'x')]", "not_literal"),
        ("[add(a=1e999)]", "not_literal"),
        ("[os.system('x')]", "syntax"),
        ("[add(1, 2, 3)]", "positional"),
        ("[add(1, a=1)]", "duplicate_argument"),
    ],
)
def test_what_is_no_literal_call_is_an_error(text, kind):
    parsed = parse(text, "pythonic", {"add": ["a", "b"]})
    assert not parsed.calls and parsed.end_of_turn
    assert [error.kind for error in parsed.errors] == [kind]


@pytest.mark.parametrize("text", ["Done (all files are moved).", "I moved it.", "", "[]", "```\n[]\n```"])
@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_an_answer_in_words_ends_the_turn(text, mode):
    assert parse(text, "pythonic", None, mode) == Parsed(end_of_turn=True)


def test_what_stands_around_a_call_list():
    assert parse("```\n[ls()]\n```", "pythonic").calls == (Call("ls", {}),)
    assert parse("ls(), pwd()", "pythonic").calls == (Call("ls", {}), Call("pwd", {}))
    assert parse("I call [ls()] now", "pythonic", None, "lenient").calls == (Call("ls", {}),)
    assert parse("The numbers are [1, 2].", "pythonic", None, "lenient") == Parsed(end_of_turn=True)
    assert parse("[ls(), pwd()", "pythonic").calls == parse("ls(), pwd()]", "pythonic").calls != ()  # as officially
    assert [error.kind for error in parse("[ls(), pwd(", "pythonic").errors] == ["syntax"]


LS, CD = Call("ls", {}), Call("cd", {"folder": "a"})
CD_JSON = '{"name": "cd", "arguments": {"folder": "a"}}'


@pytest.mark.parametrize(
    ("format", "text", "calls", "repairs"),
    [
        ("pythonic", "I call [ls()] now.", (LS,), (repair.SURROUNDING,)),
        ("pythonic", "```python\n[ls(), cd(folder='a')]\n```", (LS, CD), (repair.SURROUNDING,)),
        ("pythonic", "ls()\ncd(folder='a')", (LS, CD), (repair.SEPARATORS,)),
        ("pythonic", "[f(a=true, b=[null])]", (Call("f", {"a": True, "b": [None]}),), (repair.JSON_NAMES,)),
        ("qwen_xml", "<tool_call>{'name': 'ls', 'arguments': {}}</tool_call>", (LS,), (repair.PYTHON_LITERAL,)),
        ("qwen_xml", f"<tool_call>{CD_JSON[:-1]}</tool_call>", (CD,), (repair.MISSING_BRACE,)),
        ("qwen_xml", f"<tool_call>{CD_JSON}", (CD,), (repair.UNCLOSED_TAG,)),
        ("qwen_xml", f"<tool_call>{CD_JSON[:-1]}", (), ()),  # cut off, not closed
        ("qwen_xml", f"<tool_call>{CD_JSON[:-4]}</tool_call>", (), ()),  # inside a text: nobody knows how it ends
        (
            "qwen_xml",
            '<tool_call>{"name": "cd", "arguments": "{\\"folder\\": \\"a\\"}"}</tool_call>',
            (CD,),
            (repair.ARGUMENTS_AS_TEXT,),
        ),
        ("llama_json", "{'name': 'cd', 'parameters': {'folder': 'a'}}", (CD,), (repair.PYTHON_LITERAL,)),
        ("openai", "[{'function': {'name': 'cd', 'arguments': {'folder': 'a'}}}]", (CD,), (repair.PYTHON_LITERAL,)),
    ],
)
def test_lenient_mends_what_is_plain_and_says_what(format, text, calls, repairs):
    strict, lenient = parse(text, format), parse(text, format, None, "lenient")
    assert (lenient.calls, lenient.repairs) == (calls, repairs)
    assert strict.repairs == () and strict.calls != calls if repairs else lenient.errors
    assert strict.end_of_turn


def test_strict_runs_what_the_official_decoder_reads_as_calls():
    for text in ("[ls(), 3]", "[ls(), x]", "[ls(), 'x']", "ls(), {}"):  # one such element and none of it runs
        assert not parse(text, "pythonic").calls and parse(text, "pythonic").end_of_turn
        assert parse(text, "pythonic", None, "lenient").calls == (LS,)


def test_thoughts_are_no_calls():
    for format, call in (("pythonic", "[ls()]"), ("qwen_xml", '<tool_call>{"name": "ls"}</tool_call>')):
        assert parse(f"<think>{call} {call}</think>\n\nDone.", format) == Parsed(end_of_turn=True)
        assert parse(f"<think>no</think>\n{call}", format).calls == (LS,)


def test_openai_messages():
    function = {"name": "cd", "arguments": '{"folder": "a"}'}
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "type": "function", "function": function}],
    }
    for value in (message, message["tool_calls"], [function], function, {"function_call": function}):
        assert parse(json.dumps(value), "openai").calls == (CD,)
    assert parse(json.dumps({"role": "assistant", "content": "Done.", "tool_calls": None}), "openai").end_of_turn
    bad = parse(json.dumps([{"function": {"name": "cd", "arguments": '{"folder": '}}]), "openai")
    assert [error.kind for error in bad.errors] == ["syntax"] and bad.end_of_turn


@pytest.mark.parametrize("text", ["[f(a=0x" + "f" * 5000 + ")]", "[f(a=-0x" + "f" * 5000 + ")]"])
def test_integers_that_cannot_be_written_again_are_no_literals(text):
    assert [error.kind for error in parse(text, "pythonic").errors] == ["not_literal"]
    longest = parse("[f(a=" + "9" * 4300 + ")]", "pythonic").calls[0]
    assert json.dumps(dict(longest.arguments)) == '{"a": ' + "9" * 4300 + "}"


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("piece", ['\\"', "[1],", "<tool_call>{}", "[f(", "f()\n", "a=1 ", "{} ", '"', "-0,", '{"a":'])
def test_long_texts_take_little_time(format, piece):
    for start in ("", "[f(a=", '<tool_call>{"name": "f", "arguments": {"a": ', '"'):
        for mode in ("strict", "lenient"):
            started = time.process_time()
            parsed = parse(start + piece * (99_000 // len(piece)), format, None, mode)
            assert time.process_time() - started < 10  # a tenth of a second; were it quadratic, a minute
            assert len(parsed.calls) + len(parsed.errors) <= 1001


def test_error_messages_can_be_written_and_are_short():
    for text in ("f \ud800=1 \ud800=2", "f " + "x" * 9000 + "=1 " + "x" * 9000 + "=2"):
        (error,) = parse(text, "words").errors
        assert error.kind == "duplicate_argument" and len(error.message.encode()) <= 200


def test_parsing_warns_of_nothing(recwarn):
    assert parse(r"[f(a='\d')]", "pythonic").calls[0].arguments == {"a": r"\d"}
    assert not recwarn.list


def test_a_good_call_is_kept_beside_a_bad_one():
    parsed = parse("[ls(), add(a=1+1)]", "pythonic")
    assert [call.name for call in parsed.calls] == ["ls"] and len(parsed.errors) == 1 and not parsed.end_of_turn


def test_names_in_json_must_be_names():
    text = """<tool_call>{"name": "__import__('os').system('x') or add", "arguments": {}}</tool_call>"""
    assert parse(text, "qwen_xml").errors[0].kind == "bad_name"


def test_positionals_bind_in_the_order_of_every_kind_of_schema():
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"b": {}, "a": {}}}}}]
    for schema in (tools, {"f": ["b", "a"]}, {"f": {"b": "", "a": ""}}, (ToolDoc("f", "", (Param("b"), Param("a"))),)):
        assert parse("[f(1, 2)]", "pythonic", schema).calls[0].arguments == {"b": 1, "a": 2}


@pytest.mark.parametrize("schema", ["f", 3, [1], {"f": 3}, [{"name": "f", "parameters": {"properties": {"a": "x"}}}]])
def test_wrong_schemas_are_told(schema):
    with pytest.raises(ParamError):
        signature_of(schema)


def test_unknown_format_and_mode_are_told():
    for options in (("yaml", None, "strict"), ("words", None, "soft")):
        with pytest.raises(ParamError):
            parse("", *options)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"error": "No user is currently logged in."}', "permission"),
        ('{"error": "Invalid access token"}', "permission"),
        ('{"error": 404}', "not_found"),
        ("[{'error': 'User not authenticated. Please log in to view tickets.'}]", "permission"),
        ("['Error: User not authenticated. Please log in to view the watchlist.']", "permission"),
        ("Error during execution: f() missing 1 required positional argument: 'b'", "missing_argument"),
        ("Error during execution: f() got an unexpected keyword argument 's'", "unexpected_argument"),
        ("Error during execution: name 'f' is not defined", "unknown_tool"),
        ('{"error": "cd: \'x\': No such file or directory"}', "not_found"),
        ('{"error": "Ticket with ID 3 is already closed."}', "precondition"),
        ('{"error": "Both inputs must be numbers"}', "wrong_type"),
        ('{"login_status": false, "message": "an error came"}', ""),
        ("None", ""),
        ("[]", ""),
        ('{"error": ""}', ""),
        ("no errors were found", ""),
        ("ValueError: bad thing", "other"),
        ("MCP error -32602: Invalid arguments for tool", "invalid_value"),
        ("Terror: a film", ""),
        ("Errors: 0", ""),
        ("errors: none found, all 12 checks passed", ""),
        ('["Errors: 0"]', ""),
        ("MeanSquaredError: 0.12", ""),
        ('[{"errors": 0.0, "rows": [1,', ""),
        ('{"errors": ["x not found"], "rows": [1,', "not_found"),
        ("{{'error': 1}}", "other"),
        ("{[]: 'error'}", "other"),
        ("{'error': None, 'when': datetime.date(2020, 1, 1)}", ""),
        ("[" * 100_000 + '"error"', "other"),
        ("[" * 600 + '"error"' + "]" * 600, "other"),
        ('{"error": ' + "[" * 900 + "7" + "]" * 900 + "}", "other"),
    ],
)
def test_error_kinds_of_results(text, kind):
    assert error_kind(text) == kind


@pytest.mark.parametrize("rows", [0, 5000])  # short, and longer than what is read as a Python literal
@pytest.mark.parametrize("falsy", [None, False, 0, "", {}, []])
@pytest.mark.parametrize("write", [json.dumps, repr])
@pytest.mark.parametrize("last", [-1, None])  # cut, and whole
def test_a_result_with_nothing_to_complain_of_is_none_however_long_or_cut(rows, falsy, write, last):
    text = write({"error": falsy, "rows": [f"row {i}" for i in range(rows)]})
    assert error_kind(text[:last]) == ""
    assert error_kind(write({"error": "row 7 not found", "rows": text})[:last])


def test_an_error_behind_a_long_json_result_is_seen():
    assert error_kind(json.dumps({"rows": ["row"] * 5000, "error": "boom"})) == "other"


@pytest.mark.parametrize("format", ["qwen_xml", "llama_json", "openai"])
@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_of_a_key_that_json_holds_twice_the_last_value_counts(format, mode):
    """As json.loads has it, which the official handlers and the servers call."""
    body = '{"name": "mul", "name": "add", "arguments": {"a": 1, "b": 2, "a": 3}}'
    text = f"<tool_call>\n{body}\n</tool_call>" if format == "qwen_xml" else body
    parsed = parse(text, format, None, mode)
    assert parsed.calls == (Call("add", {"a": 3, "b": 2}),) and not parsed.errors and not parsed.repairs
