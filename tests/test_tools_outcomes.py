"""Outcomes of tool results: what a log or a result says outright, then its words; in time that grows with the text."""

import json
import time
from pathlib import Path

import pytest
from bench_outcomes import measured, results
from hypothesis import given
from hypothesis import strategies as st

from seal.diagnose.messages import conversation
from seal.diagnose.without_gold import diagnose_log
from seal.tools.error_kinds import error_kind, flagged, named_parameter

HERE = Path(__file__).parent
REPORTED = [json.loads(line) for line in (HERE / "reported_logs.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("case", REPORTED, ids=lambda case: case["id"])
def test_reported_logs(case):
    labels = {row.label for row in diagnose_log(conversation(case["input"]))}
    assert labels <= set(case["expected"]) and labels


@pytest.mark.parametrize(("half", "least", "precise"), [("seen", 0.98, 0.99), ("held_out", 0.81, 0.99)])
def test_errors_are_heard_as_frameworks_write_them(half, least, precise):
    precision, recall = measured(results(half))
    assert precision >= precise and recall >= least


@pytest.mark.parametrize(
    ("record", "failed"),
    [
        ({"is_error": True}, True),
        ({"isError": False}, False),
        ({"success": "false"}, True),
        ({"ok": True, "rows": [1]}, False),
        ({"success": True, "exit_code": 2}, True),
        ({"status": "error"}, True),
        ({"status": "failed", "message": "mail was rejected"}, True),
        ({"status": "failed", "job_id": 7}, None),  # what was asked for is a thing that failed
        ({"status": "open"}, None),
        ({"status": 503}, True),
        ({"status_code": 200}, None),
        ({"statusCode": "429"}, True),
        ({"code": 404, "message": "gone"}, True),
        ({"code": 404}, None),
        ({"code": -32602, "message": "Invalid params"}, True),
        ({"exit_code": 0, "stderr": "error: ignored"}, False),
        ({"returncode": 127}, True),
        ({"error": True}, True),
        ({"failed": 3, "passed": 9}, None),
        ({}, None),
    ],
)
def test_what_a_record_says_outright(record, failed):
    assert flagged(record) is failed


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"success": false, "message": "no such user"}', "not_found"),
        ('{"error": {"code": "invalid_value", "message": "n must be positive"}}', "invalid_value"),
        ('{"ok": true, "errors": ["row 3 was passed over"]}', ""),
        ('{"detail": "Not authenticated"}', "permission"),
        ("HTTP 429", "other"),
        ("HTTP/1.1 404 Not Found", "not_found"),
        ("429 Too Many Requests", "other"),
        ("404", ""),
        ("450 rows updated", ""),
        ("Unknown tool: foo", "unknown_tool"),
        ("Permission denied", "permission"),
        ("The request timed out.", "timeout"),
        ("unit must be one of: metric, imperial", "invalid_value"),
        ("bash: foo: command not found", "not_found"),
        ("building\n[exit code: 2]", "other"),
        ("all well\nProcess exited with code 0", ""),
        ("step 1\nTraceback (most recent call last):\n  File x\nKeyError: 'a'", "other"),
        ("Error budget: 96 percent left", ""),
        ("Error rate: 0.2%", ""),
        ("Error handling in Python: a guide", ""),
        ("0 failed, 12 passed", ""),
        ("Order status: pending", ""),
        ("Roaming is disabled", ""),
        ("The front door is locked.", ""),
        ("Pass rate: 90 percent", ""),
        ("Your reservation was cancelled.", ""),
        ("returns None if the key is not found", ""),
    ],
)
def test_words_of_a_result(text, kind):
    assert error_kind(text) == kind


@given(st.text(), st.sampled_from((True, False, None)))
def test_the_log_decides_where_it_speaks(text, failed):
    kind = error_kind(text, failed)
    assert kind if failed else isinstance(kind, str)


def test_prose_is_not_heard_where_the_log_says_that_all_went_well():
    assert error_kind("Error: disk full", False) == "" and error_kind('{"success": false}', False) == "other"


@pytest.mark.parametrize(
    ("text", "names", "parameter"),
    [
        ("f() missing 1 required positional argument: 'city'", (), "city"),
        ("f() got an unexpected keyword argument 'town'", ("city", "town"), "town"),
        ("'unit' is a required property", ("city",), "unit"),
        ("1 validation error for f\ncity\n  Field required [type=missing]", (), "city"),
        ('{"detail": [{"type": "missing", "loc": ["query", "q"], "msg": "Field required"}]}', (), "q"),
        ("unit must be one of: metric, imperial", ("city", "unit"), "unit"),
        ("Invalid value for parameter `n`: 7", ("name", "n"), "n"),
        ("Error: bad request", ("city",), ""),
    ],
)
def test_the_parameter_that_an_error_names(text, names, parameter):
    assert named_parameter(text, names) == parameter


def test_a_log_fills_in_the_parameter_that_its_error_names():
    call = {"id": "c", "name": "f", "args": {"n": 1, "unit": "x"}}
    answer = {"role": "tool", "tool_call_id": "c", "content": "unit must be one of: metric, imperial"}
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": [call]}, answer]
    talk = conversation(messages)
    assert talk.turns[0][0].calls[0].arguments == {"n": 1, "unit": "x"}
    assert [(r.label, r.parameter) for r in diagnose_log(talk) if r.primary] == [("argument_mismatch", "unit")]


PIECES = (
    *(
        "missing ",
        "error",
        "error ",
        "not found ",
        "invalid token",
        "a.",
        "aError",
        "\n",
        "'",
        '"error" : ',
        "{",
        "[",
        "[-",
    ),
    *(
        "{'a':",
        "exit code ",
        "exit_code='",
        "argument ",
        '"loc": ["a",',
        "no ",
        "failed ",
        "(",
        "status1",
        "1,",
        "the ",
    ),
    *(
        "was ",
        " ",
        "Traceback (most recent call last)\n",
        '{"error":',
        " error (",
        '\\"',
        "unexpected ",
        "field ",
        "tool ",
    ),
)


@pytest.mark.parametrize("piece", PIECES)
def test_a_megabyte_of_any_piece_is_heard_in_time(piece):
    for begin in ("", "[", '{"error": "', "Error: ", "[{'error': 1, '"):
        text = (begin + piece * 10**6)[: 10**6]
        for hear in (
            error_kind,
            lambda text: error_kind(text, True),
            lambda text: named_parameter(text, ("a", "error")),
        ):
            began = time.process_time()
            hear(text)
            assert time.process_time() - began < 0.2
