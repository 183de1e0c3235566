"""Stored rollouts as OpenTelemetry traces, sent to a real OTLP receiver."""

import json
import re
import socket
from collections import Counter
from pathlib import Path

import pytest
from otlp_receiver import attributes, receiver
from store_cases import write_tree

from seal.cli import main
from seal.report.spans import TICK
from seal.workspace.views import connect, rows

AT = "2026-01-31T12:00:00Z"
START = 1_769_860_800 * 10**9


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return write_tree(tmp_path_factory.mktemp("tree"))


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch):
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(name, raising=False)


def export(tree, url, *words):
    return main(["export", "otel", "--root", str(tree), "--endpoint", url, "--at", AT, *words])


@pytest.fixture(scope="module")
def sent(tree):
    with receiver() as (url, kept):
        assert export(tree, url, "--content") == 0
    return kept


def of_operation(kept, name):
    return [span for span in kept.spans if attributes(span)["gen_ai.operation.name"] == name]


def test_one_span_a_rollout_turn_and_call(tree, sent):
    con = connect(tree)
    (count,) = rows(con, """SELECT (SELECT count(*) FROM trajectories) AS rollouts,
        (SELECT sum(n_turns) FROM trajectories) AS turns, (SELECT sum(len(calls)) FROM steps) AS calls""")  # fmt: skip
    kinds = Counter(attributes(span)["gen_ai.operation.name"] for span in sent.spans)
    assert kinds == {
        "invoke_workflow": count["rollouts"],
        "invoke_agent": count["turns"],
        "execute_tool": count["calls"],
    }


def test_ids_make_a_tree_and_times_follow_the_order(sent):
    by_id = {(span.trace_id, span.span_id): span for span in sent.spans}
    assert len(by_id) == len(sent.spans)
    for span in sent.spans:
        kind = attributes(span)["gen_ai.operation.name"]
        assert (len(span.trace_id), len(span.span_id)) == (16, 8)
        assert span.end_time_unix_nano - span.start_time_unix_nano >= TICK
        if kind == "invoke_workflow":
            assert span.parent_span_id == b"" and span.start_time_unix_nano == START
            continue
        parent = by_id[span.trace_id, span.parent_span_id]
        above = {"invoke_agent": "invoke_workflow", "execute_tool": "invoke_agent"}[kind]
        assert attributes(parent)["gen_ai.operation.name"] == above
        assert parent.start_time_unix_nano <= span.start_time_unix_nano
        assert span.end_time_unix_nano <= parent.end_time_unix_nano


def test_labels_details_and_verdicts_are_those_of_the_tables(tree, sent):
    con = connect(tree)
    found = {}
    for row in rows(con, "SELECT * FROM stored.diagnoses ORDER BY rollout_id, turn, rank"):
        found.setdefault((row["phase"], row["rollout_id"], row["turn"]), []).append(row)
    valid = {(r["phase"], r["rollout_id"], r["turn"]): r["valid"] for r in rows(con, "SELECT * FROM stored.verdicts")}
    for span in of_operation(sent, "invoke_agent"):
        said = attributes(span)
        key = (said["seal.phase"], said["gen_ai.conversation.id"], said["seal.turn"])
        assert said["seal.labels"] == [row["label"] for row in found[key]]
        assert said["seal.details"] == [row["detail"] for row in found[key]]
        assert said["seal.label"] == next(row["label"] for row in found[key] if row["primary"])
        assert said["seal.verdict.valid"] == valid[key]
        assert (span.status.code == 2) == (not valid[key])
        assert said.get("error.type", said["seal.label"]) == said["seal.label"]


def test_calls_carry_the_conventions_attributes(sent):
    failed = 0
    for span in of_operation(sent, "execute_tool"):
        said = attributes(span)
        assert span.name == f"execute_tool {said['gen_ai.tool.name']}" and said["gen_ai.tool.type"] == "function"
        assert isinstance(json.loads(said["gen_ai.tool.call.arguments"]), dict)
        assert (span.status.code == 2) == ("error.type" in said)
        failed += "error.type" in said
    assert failed
    for span in of_operation(sent, "invoke_agent"):
        said = attributes(span)
        assert {"gen_ai.provider.name", "gen_ai.agent.name", "gen_ai.request.model"} <= said.keys()
        (message,) = json.loads(said["gen_ai.input.messages"])
        assert message["role"] == "user" and message["parts"][0]["content"]


def test_the_page_names_every_attribute_and_metric(sent):
    page = (Path(__file__).parents[1] / "docs" / "otel.md").read_text()
    page = re.sub(r"^```.*?^```", "", page, flags=re.M | re.S)
    words = {word.strip(".") for code in re.findall(r"`([^`]+)`", page) for word in (code, code.removeprefix("seal."))}
    names = {name for span in sent.spans for name in attributes(span)} | set(sent.points)
    names |= {name for points in sent.points.values() for at, _ in points for name in at}
    assert not {n for n in names if n not in words and n.rsplit(".", 1)[-1] not in words}


def test_label_rates_are_metrics_that_sum_to_one(tree, sent):
    rates = sent.points["seal.label.rate"]
    sums = Counter()
    for at, value in rates:
        sums[at["seal.round"], at["seal.phase"], at["seal.interface_mode"]] += value
    assert set(sums) >= {("r0", "evaluate", "off"), ("r2", "collect", "full"), ("r2", "train", "off")}
    assert all(total == pytest.approx(1) for total in sums.values())
    assert any(at["gen_ai.tool.name"] for at, _ in rates)
    (score,) = (v for at, v in sent.points["seal.success.rate"] if list(at.values()) == ["r2", "evaluate", "full"])
    asked = """SELECT avg(success::INT) AS s FROM trajectories
        WHERE (round, phase, interface_mode) = ('r2', 'evaluate', 'full')"""
    assert score == pytest.approx(rows(connect(tree), asked)[0]["s"])


def test_the_same_rollouts_are_the_same_bytes(tree):
    bodies = []
    for _ in range(2):
        with receiver() as (url, kept):
            assert export(tree, url, "r1", "--phase", "train") == 0
        bodies.append([(path, message.SerializeToString(deterministic=True)) for path, _, message in kept.requests])
    assert bodies[0] == bodies[1] and bodies[0]


def test_texts_stay_here_unless_asked_for(tree, monkeypatch):
    with receiver() as (url, kept):
        assert export(tree, url, "r0") == 0
        names = {name for span in kept.spans for name in attributes(span)}
        assert not {n for n in names if "messages" in n or "arguments" in n or "result" in n or "evidence" in n}
        assert {attributes(span)["seal.round"] for span in kept.spans} == {"r0"}


def test_settings_of_opentelemetry_hold(tree, monkeypatch):
    with receiver() as (url, kept):
        for name, value in {"ENDPOINT": url, "HEADERS": "api-key=secret", "COMPRESSION": "gzip"}.items():
            monkeypatch.setenv(f"OTEL_EXPORTER_OTLP_{name}", value)
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "service.name=mine,team=agents")
        assert export(tree, "", "r0") == 0
    (path, headers, message) = kept.requests[0]
    assert path == "/v1/traces" and headers["api-key"] == "secret" and headers["Content-Encoding"] == "gzip"
    resource = attributes(message.resource_spans[0].resource)
    assert resource["service.name"] == "mine" and resource["team"] == "agents"
    assert attributes(kept.requests[-1][2].resource_metrics[0].resource) == resource


def test_one_rollout_alone(tree):
    (row,) = rows(connect(tree), "SELECT rollout_id FROM trajectories WHERE phase = 'collect' LIMIT 1")
    with receiver() as (url, kept):
        assert export(tree, url, "--rollout", row["rollout_id"]) == 0
    assert {attributes(span)["gen_ai.conversation.id"] for span in kept.spans} == {row["rollout_id"]}
    assert not kept.points


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def test_nobody_listens(tree, capfd):
    url = f"http://127.0.0.1:{free_port()}"
    assert export(tree, url, "r0", "--timeout", "0.5") == 6
    out, err = capfd.readouterr()
    assert err.count("\n") == 2 and url in err and "Traceback" not in err and not out


@pytest.mark.parametrize("status", [400, 404, 500])
def test_a_receiver_that_refuses(tree, capfd, status):
    with receiver() as (url, kept):
        kept.status = status
        assert export(tree, url, "r0", "--timeout", "0.5") == 6
    assert str(status) in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--endpoint", "localhost:4318"), 2),
        (("--at", "yesterday"), 2),
        (("--at", "0001-01-01"), 2),
        (("--at", "9999-01-01"), 2),
        (("--timeout", "0"), 2),
        (("r9",), 5),
        (("r0", "--phase", "train"), 5),
        (("--rollout", "none"), 5),
    ],
)
def test_what_makes_no_sense_is_one_clear_error(tree, capsys, words, code):
    assert main(["export", "otel", "--root", str(tree), *words]) == code
    assert capsys.readouterr().err.startswith("error: ")
