"""Any log: OpenAI-style conversations without gold."""

import json
from argparse import ArgumentParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.commands.diagnose import add_arguments, run
from seal.core.errors import ArtifactError, ParamError
from seal.diagnose.log import Conversation, Malformed, diagnose_log, read_log
from seal.tools.shapes import error_kind

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
    ],
)
def test_what_can_be_said_without_gold(line, label, detail):
    ((_, conversation),) = read_log([line])
    first = diagnose_log(conversation)[0]
    assert (first.label, first.detail, first.primary) == (label, detail, True)


def test_malformed_lines_are_reported_by_number_and_skipped():
    lines = [talk(GOOD), "", "{not json", '{"messages": 3}', "[]", '{"messages": [{"content": "x"}]}', talk(DENIED)]
    read = dict(read_log(lines))
    assert [n for n, found in read.items() if isinstance(found, Malformed)] == [3, 4, 5, 6]
    assert isinstance(read[7], Conversation) and read[3].line == 3


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)
    )
)
def test_no_line_is_fatal(value):
    for _, found in read_log([json.dumps(value), json.dumps({"messages": value}), json.dumps({"messages": [value]})]):
        if isinstance(found, Conversation):
            diagnose_log(found)


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
    assert "line 3 turn 0 * constraint_violation" in out and "2 turns, 1 lines skipped" in out


def test_command_says_no(tmp_path):
    with pytest.raises(ArtifactError):
        run(parsed("--input", str(tmp_path / "none")))
    with pytest.raises(ParamError):
        run(parsed("--inject", "--n", "-1"))


@pytest.mark.parametrize("text", ["", "broken", "[]\n7\n"])
def test_a_log_with_nothing_to_label_is_an_error(tmp_path, text):
    path = tmp_path / "log.jsonl"
    path.write_text(text)
    with pytest.raises(ArtifactError, match="no turn to label"):
        run(parsed("--input", str(path)))
