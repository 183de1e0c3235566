"""Any log: conversations without gold, in the dialects of chat APIs, as JSONL and Parquet, however broken."""

import gzip
import json
import random
import time
from argparse import ArgumentParser

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from seal.commands.diagnose import add_arguments, run
from seal.core.errors import ArtifactError, ParamError
from seal.diagnose import log_file
from seal.diagnose.log_file import Malformed, diagnose_file, line_records, lines
from seal.diagnose.messages import conversation
from seal.diagnose.without_gold import diagnose_log
from seal.tools.error_kinds import error_kind

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "refund",
            "parameters": {
                "type": "object",
                "properties": {"order": {"type": "string"}, "reason": {"type": "string", "enum": ["late", "lost"]}},
                "required": ["order", "reason"],
            },
        },
    }
]


def talk(*exchanges):
    """One user turn of (name, arguments text, result) exchanges, as a line of JSON."""
    messages = [{"role": "user", "content": "refund my order"}]
    for i, (name, arguments, result) in enumerate(exchanges):
        function = {"name": name, "arguments": arguments}
        messages.append(
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": f"c{i}", "type": "function", "function": function}],
            }
        )
        messages.append({"role": "tool", "tool_call_id": f"c{i}", "content": result})
    messages.append({"role": "assistant", "content": "done"})
    return json.dumps({"messages": messages, "tools": TOOLS})


TOOLS.append({"name": "count", "parameters": {"properties": {"n": {"type": "integer"}}, "required": ["n"]}})


def counted(n, result):
    return ("count", f'{{"n": {n}}}', result)


GOOD = ("refund", '{"order": "1", "reason": "late"}', '{"ok": true}')
DENIED = ("refund", '{"order": "1", "reason": "late"}', '{"error": "permission denied"}')


@pytest.mark.parametrize(
    ("line", "label", "detail"),
    [
        (talk(GOOD), "pass", "no_failure_seen"),
        (talk(), "pass", "no_call"),
        (talk(DENIED, GOOD), "pass", "recovered"),
        (talk(DENIED), "constraint_violation", "permission"),
        (
            talk(("refund", '{"order": "1"}', '{"error": "missing argument reason"}')),
            "argument_mismatch",
            "missing_parameter",
        ),
        (talk(("refund", '{"order": "1", "reason": "sad"}', "Error: bad")), "argument_mismatch", "enum_value"),
        (talk(("refnd", "{}", "Error: unknown tool")), "invalid_tool_call", "unknown_tool"),
        (talk(("refund", '{"order": ', "")), "invalid_tool_call", "syntax"),
        (talk(("refund", '{"order": "1", "reason": "late"}', "Error: 500")), "recovery_failure", "gave_up"),
        (talk(GOOD, GOOD, GOOD), "budget_exhausted", "call_loop"),
        (talk(counted("1.0", "ok")), "pass", "no_failure_seen"),  # an integer, says JSON Schema, and the tool ran
        (talk(counted("1.0", "Error: n must be an integer")), "argument_mismatch", "type"),  # not to this one
        (talk(counted("1.0", "Error: permission denied")), "constraint_violation", "permission"),
        (talk(counted("1.5", "ok")), "argument_mismatch", "type"),
        (talk(counted("true", "ok")), "argument_mismatch", "type"),
    ],
)
def test_what_can_be_said_without_gold(line, label, detail):
    first = diagnose_log(conversation(json.loads(line)))[0]
    assert (first.label, first.detail, first.primary) == (label, detail, True)


def primary(record):
    """(label, detail, confidence) of the primary label of each turn."""
    return [(d.label, d.detail, d.confidence) for d in diagnose_log(conversation(record)) if d.primary]


def user(content="refund my order"):
    return {"role": "user", "content": content}


def asked(*calls, **more):
    """An assistant message with these (id, name, arguments) calls."""
    made = [{"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}} for i, n, a in calls]
    return {"role": "assistant", "content": None, "tool_calls": made, **more}


def answer(text, **more):
    return {"role": "tool", "content": text, **more}


ARGUMENTS = {"order": "1", "reason": "late"}
DENIAL = '{"error": "permission denied"}'


def test_parallel_calls_do_not_repair_each_other():
    calls = asked(("a", "refund", ARGUMENTS), ("b", "refund", {**ARGUMENTS, "order": "2"}))
    both = [answer(DENIAL, tool_call_id="a"), answer("{}", tool_call_id="b")]
    for answers in (both, both[::-1]):
        assert primary([user(), calls, *answers])[0][:2] == ("constraint_violation", "permission")
    later = [asked(("c", "refund", ARGUMENTS)), answer("{}", tool_call_id="c")]
    assert primary([user(), calls, *both, *later])[0][:2] == ("pass", "recovered")


def test_results_go_to_their_calls_also_where_ids_come_again_or_are_missing():
    again = [user(), asked(("call_0", "refund", ARGUMENTS)), answer("{}", tool_call_id="call_0")]
    denied = [user(), asked(("call_0", "refund", ARGUMENTS)), answer(DENIAL, tool_call_id="call_0")]
    assert [label for label, _, _ in primary(again + denied)] == ["pass", "constraint_violation"]
    assert [label for label, _, _ in primary(denied + again)] == ["constraint_violation", "pass"]
    nameless = [
        user(),
        asked((None, "a", {}), (None, "refund", ARGUMENTS)),
        answer(DENIAL, name="refund"),
        answer("{}"),
    ]
    assert {d.tool for d in diagnose_log(conversation(nameless))} == {"refund"}


def test_calls_of_one_message_with_one_id_are_answered_in_order():
    twice = [user(), asked(("x", "a", {}), ("x", "refund", ARGUMENTS))]
    found = diagnose_log(conversation([*twice, answer("{}", tool_call_id="x"), answer(DENIAL, tool_call_id="x")]))
    assert {d.tool for d in found} == {"refund"}


def test_a_long_conversation_takes_linear_time():
    call, lost = asked(("x", "a", {})), answer("{}", tool_call_id="y")
    started = time.process_time()
    assert primary([user(), *[call, lost] * 20_000, answer("{}", tool_call_id="x")])[0][0] == "budget_exhausted"
    assert time.process_time() - started < 8  # a second or two; were it quadratic, a minute


def test_a_call_whose_result_is_not_in_the_log_is_hardly_a_pass():
    assert primary([user(), asked(("a", "refund", ARGUMENTS))]) == [("pass", "no_result", 0.1)]
    unproven = [user(), asked(("a", "refund", ARGUMENTS)), answer(DENIAL, tool_call_id="a"), asked(("b", "refund", {}))]
    assert primary(unproven)[0][0] == "constraint_violation"
    assert primary([answer("{}", tool_call_id="z"), user(), {"role": "assistant", "content": "hi"}])[0][1] == "no_call"


def test_roles_and_parts():
    parts = [{"type": "text", "text": "refund "}, {"type": "image_url", "image_url": {"url": "x"}}]
    head = [{"role": "system", "content": "s"}, {"role": "developer", "content": "d"}, user(parts)]
    result = answer([{"type": "text", "text": DENIAL}], tool_call_id="a")
    assert primary([*head, asked(("a", "refund", ARGUMENTS)), result])[0][0] == "constraint_violation"
    with pytest.raises(ValueError, match="message 3: role 'ipython'"):
        conversation([*head, {"role": "ipython", "content": "x"}])


def test_the_older_function_call():
    call = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "refund", "arguments": json.dumps(ARGUMENTS)},
    }
    talked = [user(), call, {"role": "function", "name": "refund", "content": DENIAL}]
    assert primary({"messages": talked, "functions": [TOOLS[0]["function"]]})[0][0] == "constraint_violation"
    assert primary({"messages": talked, "functions": [{"name": "other"}]})[0][:2] == (
        "invalid_tool_call",
        "unknown_tool",
    )


def test_anthropic_blocks():
    use = {"type": "tool_use", "id": "t1", "name": "refund", "input": {"order": "1"}}
    said = {"role": "assistant", "content": [{"type": "text", "text": "one moment"}, use]}
    got = user(
        [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "no"}], "is_error": True}]
    )
    tool = {"name": "refund", "input_schema": TOOLS[0]["function"]["parameters"]}
    found = diagnose_log(conversation({"messages": [user(), said, got], "tools": [tool]}))
    assert {d.turn for d in found} == {0}  # a result is no new user turn
    assert (found[0].label, found[0].detail, found[0].parameter) == ("argument_mismatch", "missing_parameter", "reason")
    assert ("recovery_failure", "gave_up") in {(d.label, d.detail) for d in found}


def labelled(path):
    return dict(diagnose_file(path))


RECORDS = [json.loads(talk(GOOD)), json.loads(talk(DENIED)), json.loads(talk())["messages"]]


@pytest.mark.parametrize("indent", [None, 0, 1, "\t"])
@pytest.mark.parametrize("before", ["", "\n \n", "\ufeff"])
def test_one_json_value_is_read_as_its_lines_would_be(tmp_path, indent, before):
    lines_, array, one, messages = (tmp_path / name for name in ("lines", "array", "one", "messages"))
    lines_.write_text("\n".join(map(json.dumps, RECORDS)))
    array.write_text(before + json.dumps(RECORDS, indent=indent) + "\n")
    assert list(diagnose_file(array)) == list(diagnose_file(lines_)) and len(list(diagnose_file(array))) == 3
    one.write_text(before.strip("\n ") + json.dumps(RECORDS[1], indent=indent))
    messages.write_text(before.strip("\n ") + json.dumps(RECORDS[2], indent=indent))
    lines_.write_text(f"{json.dumps(RECORDS[1])}\n{json.dumps(RECORDS[2])}")
    found = [found for path in (one, messages) for _, found in diagnose_file(path)]
    assert found == [found for _, found in diagnose_file(lines_)]


def test_what_is_wrong_in_an_array_is_told_by_its_number(tmp_path):
    path = tmp_path / "array.json"
    path.write_text(json.dumps([RECORDS[0], 7, {"messages": [{"role": "robot"}]}, RECORDS[1]], indent=1))
    found = list(diagnose_file(path))
    assert [number for number, _ in found] == [1, 2, 3, 4]
    assert [isinstance(what, Malformed) for _, what in found] == [False, True, True, False]


@pytest.mark.parametrize("indent", [None, 1])
def test_an_array_too_large_to_be_read_says_how_to_make_lines_of_it(tmp_path, monkeypatch, indent):
    monkeypatch.setattr(log_file, "MAX_LINE", 500)
    monkeypatch.setattr(log_file.lines, "__defaults__", (500,))
    path = tmp_path / "array.json"
    path.write_text(json.dumps(RECORDS, indent=indent))
    with pytest.raises(ArtifactError, match="jq -c"):
        run(parsed("--input", str(path)))


def test_malformed_lines_are_reported_by_number_and_skipped(tmp_path):
    path = tmp_path / "log.jsonl"
    text = [talk(GOOD), "", "{not json", '{"messages": 3}', "[]", '{"messages": [{"content": "x"}]}', talk(DENIED)]
    path.write_bytes(b"\xef\xbb\xbf" + "\n".join(text).encode() + b'\n{"messages": "\xff"}')
    found = labelled(path)
    assert [n for n, one in found.items() if isinstance(one, Malformed)] == [3, 4, 5, 6, 8]
    assert found[3].line == 3 and found[7][0].label == "constraint_violation"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=5), v, max_size=3),
    max_leaves=8,
)


def spoilt(value, wrong):
    """The same value with one slot after the other replaced."""
    yield wrong
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(items):
        for other in spoilt(item, wrong):
            copy = value.copy()
            copy[key] = other
            yield copy


BLOCKS = [
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "refund", "input": {"order": "1"}}]},
    user([{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "no"}]}]),
    {"role": "assistant", "function_call": {"name": "refund", "arguments": "{}"}},
    {"role": "function", "name": "refund", "content": "{}"},
]


@given(JSON)
def test_wrong_types_in_every_slot_are_skipped_or_read(wrong):
    record = json.loads(talk(GOOD, DENIED))
    record["messages"] += BLOCKS
    for value in spoilt(record, wrong):
        try:
            found = diagnose_log(conversation(value))
        except ValueError as error:
            assert str(error)
        else:
            assert all(0 < d.confidence <= 1 for d in found)


@given(st.lists(st.binary(max_size=20)), st.integers(1, 9))
def test_lines_are_those_of_the_file_but_for_long_ones(pieces, most):
    import io

    data = b"\n".join(pieces)
    whole = io.BytesIO(data).readlines()
    found = list(lines(io.BytesIO(data), most))
    assert len(found) == len(whole)
    assert all(line == (one if line is not None else None) for line, one in zip(found, whole, strict=True))
    assert all(len(one.rstrip(b"\n")) > most - 1 for line, one in zip(found, whole, strict=True) if line is None)


@given(st.lists(st.binary(max_size=30)))
def test_no_line_is_fatal(pieces):
    for number, found in line_records(pieces):
        assert not isinstance(found, Malformed) or found.line == number


def test_a_line_of_any_length_is_one_skipped_line(tmp_path, monkeypatch):
    monkeypatch.setattr(log_file, "MAX_LINE", 5000)
    path = tmp_path / "log.jsonl"
    monkeypatch.setattr(lines, "__defaults__", (5000,))
    path.write_text("\n".join([talk(GOOD), "[" * 20_000, talk(DENIED), "[" * 4_000]))
    found = labelled(path)
    assert isinstance(found[2], Malformed) and "longer" in found[2].reason and isinstance(found[3], list)
    assert isinstance(found[4], Malformed)  # too deep


def as_parquet(path, *records, **options):
    parquet.write_table(pa.Table.from_pylist(list(records)), path, **options)
    return path


STRUCTS = [user(), asked(("a", "refund", ARGUMENTS)), answer(DENIAL, tool_call_id="a")]


def test_parquet_with_structs_or_json_text(tmp_path):
    plain = {"messages": STRUCTS, "tools": TOOLS}
    text = {name: json.dumps(value) for name, value in plain.items()}
    mixed = {"messages": [json.dumps(message) for message in STRUCTS], "tools": json.dumps(TOOLS)}
    expected = diagnose_log(conversation(plain))
    for i, record in enumerate((plain, text, mixed)):
        assert labelled(as_parquet(tmp_path / f"{i}.parquet", record)) == {1: expected}


def test_nulls_of_parquet_structs_are_not_arguments(tmp_path):
    """Exports of structs give every call the arguments of all calls, null where it has them not."""
    other = {"role": "assistant", "tool_calls": [{"id": "b", "function": {"name": "look", "arguments": {"path": "x"}}}]}
    call = {"role": "assistant", "tool_calls": [{"id": "a", "function": {"name": "refund", "arguments": ARGUMENTS}}]}
    records = ({"messages": [user(), call, answer("{}", tool_call_id="a")]}, {"messages": [user(), other]})
    path = as_parquet(tmp_path / "log.parquet", *({**r, "tools": json.dumps(TOOLS)} for r in records))
    found = labelled(path)
    assert (found[1][0].label, found[1][0].detail) == ("pass", "no_failure_seen")
    assert found[2][0].detail == "unknown_tool"


def test_broken_parquet(tmp_path):
    path = as_parquet(tmp_path / "log.parquet", *[{"messages": talk(DENIED), "id": i} for i in range(40)],
                      row_group_size=10, compression="none", use_dictionary=False)  # fmt: skip
    data = path.read_bytes()
    path.write_bytes(data[:-20])
    with pytest.raises(ArtifactError, match="truncated"):
        labelled(path)
    at = data.index(b"PAR1") + 4
    path.write_bytes(data[:at] + b"\xff" * 200 + data[at + 200 :])  # the first group's pages
    found = labelled(path)
    assert isinstance(found[1], Malformed) and found[1].n == 10 and len(found) == 31
    as_parquet(path, {"conversation": "x"})
    with pytest.raises(ArtifactError, match="no column messages among conversation"):
        labelled(path)


@pytest.mark.parametrize("compression", ["none", "snappy"])
def test_damaged_parquet_is_one_error_or_skipped_rows(tmp_path, compression):
    rng, path = random.Random(0), tmp_path / "log.parquet"
    record = {"messages": STRUCTS, "tools": json.dumps(TOOLS)}
    whole = as_parquet(path, *[record] * 12, row_group_size=4, compression=compression).read_bytes()
    ends = set()
    for _ in range(100):
        damaged = bytearray(whole)
        for _ in range(rng.choice((1, 3, 30))):
            damaged[rng.randrange(len(whole))] = rng.randrange(256)
        path.write_bytes(damaged[: rng.choice((len(whole), len(whole), rng.randrange(len(whole))))])
        try:
            ends |= {type(found) for found in labelled(path).values()}
        except ArtifactError:
            ends.add(ArtifactError)
    assert ends == {list, Malformed, ArtifactError}


@given(st.data())
def test_no_parquet_row_is_fatal(tmp_path_factory, data):
    values = data.draw(
        st.lists(st.binary(max_size=9) | st.text(max_size=9) | st.integers(-9, 9), min_size=1, max_size=3)
    )
    rows = [{"messages": json.dumps(v) if isinstance(v, int) else v} for v in values]
    kind = pa.binary() if any(isinstance(v, bytes) for v in values) else pa.string()
    rows = [
        {
            "messages": r["messages"].encode()
            if kind == pa.binary() and isinstance(r["messages"], str)
            else r["messages"]
        }
        for r in rows
    ]
    path = tmp_path_factory.mktemp("p") / "log.parquet"
    parquet.write_table(pa.Table.from_pylist(rows, pa.schema([("messages", kind)])), path)
    assert sum(found.n if isinstance(found, Malformed) else 1 for found in labelled(path).values()) == len(rows)


@given(st.text())
def test_error_kind_of_any_text(text):
    assert isinstance(error_kind(text), str)


def test_kinds_of_errors():
    texts = {
        "Error during execution: f() got an unexpected keyword argument 'x'": "unexpected_argument",
        "Error during execution: f() missing 1 required positional argument: 'y'": "missing_argument",
        "Error during execution: name 'foo' is not defined": "unknown_tool",
        '{"error": "cd: \'x\': No such file or directory"}': "not_found",
        "[{'error': 'User not authenticated. Please log in to view tickets.'}]": "permission",
        "error refused": "precondition",
        '{"error": 404}': "not_found",
    }
    assert {text: error_kind(text) for text in texts} == texts


def parsed(*words):
    parser = ArgumentParser()
    add_arguments(parser)
    return parser.parse_args(words)


def test_command_on_a_file(tmp_path, capsys):
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join([talk(GOOD), "broken", talk(DENIED)]))
    assert run(parsed("--input", str(path))) == 0
    out, err = capsys.readouterr()
    assert "line 2: skipped" in err
    assert "constraint_violation" in out and "2 turns, 1 lines skipped" in out


def test_command_in_other_formats(tmp_path, capsys):
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join([talk(GOOD), talk(DENIED)]))
    run(parsed("--input", str(path), "--format", "json"))
    rows = json.loads(capsys.readouterr().out)
    assert [(r["line"], r["rank"], r["label"]) for r in rows][:2] == [(1, 0, "pass"), (2, 0, "constraint_violation")]
    run(parsed("--input", str(path), "--format", "csv"))
    assert capsys.readouterr().out.splitlines()[0].split(",") == list(rows[0])
    out = tmp_path / "labels.parquet"
    run(parsed("--input", str(path), "--format", "parquet", "--output", str(out)))
    assert parquet.read_table(out).to_pylist() == rows
    with pytest.raises(ParamError):
        run(parsed("--input", str(path), "--format", "parquet"))


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_what_a_log_says_cannot_break_the_output(tmp_path, capsysbinary, form):
    path = tmp_path / "log.jsonl"
    names = "\ud800", "\x1b[31mred", "a\nb", "\u202e"
    path.write_text("\n".join(talk((name, "{}", "Error: unknown tool")) for name in names) + "\n\x1b[31m")
    run(parsed("--input", str(path), "--format", form))
    out, err = capsysbinary.readouterr()
    out.decode()
    assert b"\x1b" not in err and (form == "csv" or b"\x1b" not in out)


def test_many_malformed_lines_are_summed_up(tmp_path, capsys):
    path = tmp_path / "log.jsonl"
    path.write_text("x\n" * 500 + talk(GOOD))
    run(parsed("--input", str(path)))
    out, err = capsys.readouterr()
    assert err.count("skipped") == 20 and "and 480 more" in err and "500 lines skipped" in out


def test_command_says_no(tmp_path):
    with pytest.raises(ArtifactError):
        run(parsed("--input", str(tmp_path / "none")))
    with pytest.raises(ArtifactError):
        run(parsed("--input", str(tmp_path)))
    with pytest.raises(ParamError):
        run(parsed("--inject", "--n", "-1"))


@pytest.mark.parametrize("text", [b"", b"broken", b"[]\n7\n", b"\n\n"])
def test_a_log_with_nothing_to_label_is_an_error(tmp_path, text):
    path = tmp_path / "log.jsonl"
    path.write_bytes(text)
    with pytest.raises(ArtifactError, match="no turn to label"):
        run(parsed("--input", str(path)))


BINARY = [b"\x7fELF\0\0", "talk".encode("utf-16"), gzip.compress(b"{}", mtime=0), b"PAR1", b"PAR1PAR1"]


@pytest.mark.parametrize("data", BINARY)
def test_a_file_of_another_kind_is_one_error(tmp_path, data):
    path = tmp_path / "log.jsonl"
    path.write_bytes(data)
    with pytest.raises(ArtifactError, match="conversation log"):
        run(parsed("--input", str(path)))
