"""Verdicts without gold: checker, schema, judge; and the confidence on its way to labels and weights."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.core.errors import DependencyError, ParamError
from seal.core.judged import Judged
from seal.core.types import Call, CallError, Result, Rollout, Step, Verdict
from seal.diagnose import diagnose
from seal.env import load_env
from seal.settings.envs import JudgeParams
from seal.settings.train import TrainParams
from seal.store.rows import verdict_of, verdict_row
from seal.train.reweight import Factors, turn_weights
from seal.verify.graded import Faulty, Played, opinion_of, schema_only
from seal.verify.judge_model import LEAST, UNSURE, Unreadable, ask, judge, request_of
from seal.verify.judge_model import verdict_of as read_verdict
from seal.verify.rollout import progress, success
from seal.verify.turns import verify

TOOLS = '''
box: dict[str, int] = {}


def put(key: str, n: int = 1) -> str:
    """Put."""
    if n < 0:
        raise ValueError("n must be positive")
    box[key] = n
    return f"{key} {n}"


def _right(played):
    return played.state["box"].get("a") == 1


def _unsure(played):
    return bool(played.calls), 0.4


def _wrong(played):
    return played.state["box"]["nowhere"]


def _leaving(played):
    raise SystemExit(0)


def _endless(played):
    while True:
        pass


def _odd(played):
    return 0.5


def _second(played):
    return played.earlier[0].message == "first" and played.before != played.state and played.results[0].raw == "b 1"
'''


def task_of(name, *turns, **change):
    return {"id": name, "split": "train", "turns": list(turns)} | change


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    folder = tmp_path_factory.mktemp("graded")
    (folder / "graded_tools.py").write_text(TOOLS)
    tasks = [
        task_of("right", {"user": "put a", "check": "_right"}),
        task_of("unsure", {"user": "put a", "check": "_unsure"}),
        task_of("schema", {"user": "put a", "check": "schema"}),
        task_of("judge", {"user": "put a", "check": "judge"}),
        task_of("wrong", {"user": "put a", "check": "_wrong"}),
        task_of("odd", {"user": "put a", "check": "_odd"}),
        task_of("leaving", {"user": "put a", "check": "_leaving"}),
        task_of("endless", {"user": "put a", "check": "_endless"}),
        task_of("elsewhere", {"user": "put a", "check": "graded_tools:_right"}),
        task_of(
            "both", {"user": "first", "gold": ['put("a")']}, {"user": "then", "gold": ['put("b")'], "check": "_second"}
        ),
        task_of("gold", {"user": "put a", "gold": ['put("a")']}, split="test"),
    ]
    (folder / "tasks.yaml").write_text(json.dumps(tasks))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.chdir(folder)
        yield load_env("custom", module="graded_tools", judge={"url": "http://127.0.0.1:9/v1", "model": "m"})


def played(env, name, *turns):
    """(task, rollout, verdicts, diagnoses) of turns of calls; None in a turn stands for text that is no call."""
    task = next(task for task in env.tasks() if task.task_id == name)
    session, steps = env.open(task), []
    for turn, calls in enumerate(turns):
        for i, call in enumerate((*calls, ())):
            error = (CallError("syntax", "no"),) if call is None else ()
            said = (call,) if call else ()
            steps.append(Step(turn, i, "", said, error, tuple(session.call(c) for c in said)))
    rollout = Rollout("r", name, 0, 0, "off", "p", "bare", tuple(steps), "finished")
    verdicts = verify(env, task, rollout.calls_by_turn(len(task.turns)))
    return task, rollout, verdicts, diagnose(env, task, rollout, verdicts)


PUT, FAIL, FLY = Call("put", {"key": "a"}), Call("put", {"key": "a", "n": -1}), Call("fly", {})


@pytest.mark.parametrize(
    ("name", "calls", "valid", "confidence", "label"),
    [
        ("right", [PUT], True, 1.0, "pass"),
        ("elsewhere", [PUT], True, 1.0, "pass"),
        ("right", [Call("put", {"key": "b"})], False, 1.0, "state_mismatch"),
        ("right", [], False, 1.0, "missing_tool_call"),
        ("right", [FLY], False, 1.0, "invalid_tool_call"),
        ("right", [None], False, 1.0, "invalid_tool_call"),
        ("right", [FAIL], False, 1.0, "argument_mismatch"),
        ("right", [FAIL, PUT], True, 1.0, "pass"),
        ("unsure", [PUT], True, 0.4, "pass"),
        ("unsure", [], False, 0.4, "missing_tool_call"),
        ("schema", [PUT], True, 0.3, "pass"),
        ("schema", [FAIL, PUT], True, 0.3, "pass"),
        ("schema", [PUT, FAIL], False, 0.3, "argument_mismatch"),
        ("schema", [], False, 0.3, "missing_tool_call"),
        ("gold", [PUT], True, 1.0, "pass"),
    ],
)
def test_verdicts_and_labels(env, name, calls, valid, confidence, label):
    task, rollout, (verdict,), labels = played(env, name, calls)
    assert (verdict.valid, verdict.confidence) == (valid, confidence)
    assert success(task, [verdict], rollout) == valid and progress(task, [verdict]) == float(valid)
    primary = next(d for d in labels if d.primary)
    assert primary.label == label and primary.root
    assert all(0 < d.confidence <= confidence for d in labels)
    assert verdict_of(verdict_row(verdict)) == verdict


FAULTY = [("wrong", "KeyError"), ("odd", "returned 0.5"), ("leaving", "SystemExit"), ("endless", "more than 0.2")]


@pytest.mark.parametrize(("name", "says"), FAULTY)
def test_a_checker_that_fails_is_not_the_policys_fault(env, monkeypatch, name, says):
    monkeypatch.setattr("seal.verify.graded.SECONDS", 0.2)
    _, rollout, verdicts, labels = played(env, name, [PUT])
    assert says in verdicts[0].evidence["checker_error"] and not verdicts[0].valid
    assert [d.label for d in labels] == ["checker_error"]
    assert not Judged(rollout, tuple(verdicts), tuple(labels), False, 0.0).usable


def test_a_turn_may_have_gold_and_a_checker_that_sees_what_came_before(env):
    _, _, verdicts, labels = played(env, "both", [PUT], [Call("put", {"key": "b"})])
    assert [v.valid for v in verdicts] == [True, True] and [v.evidence.get("graded") for v in verdicts] == [
        None,
        "_second",
    ]
    _, _, verdicts, labels = played(env, "both", [PUT], [])
    assert not verdicts[1].valid
    assert next(d.label for d in labels if d.primary and d.turn == 1) == "missing_tool_call"


def test_a_checker_changes_nothing_it_looks_at(env, monkeypatch):
    def vandal(played):
        played.state["box"].clear()
        return True

    monkeypatch.setattr(type(env), "checker", lambda self, name: vandal)
    assert played(env, "right", [PUT])[2][0].valid
    assert played(env, "gold", [PUT])[2][0].valid


@given(st.one_of(st.booleans(), st.tuples(st.booleans(), st.floats()), st.none(), st.text(), st.tuples(st.integers())))
def test_an_opinion_is_a_verdict_with_a_confidence_or_a_fault(answer):
    try:
        valid, confidence, _ = opinion_of(answer)
    except Faulty:
        return
    assert valid in (True, False) and 0 < confidence <= 1


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["", "other"])), max_size=6))
def test_schema_only_asks_that_the_last_call_of_every_tool_ran(rows):
    turn = Played("", tuple(Call(t, {}) for t, _ in rows), tuple(Result("", "", k) for _, k in rows), {}, {})
    assert schema_only(turn)[0] == (bool(rows) and not any(dict(rows).values()))


# The confidence in training.


@given(st.floats(0.01, 1), st.floats(0.01, 1), st.sampled_from(["turn", "trajectory"]))
def test_confidence_scales_the_weight_towards_one(env, low, high, granularity):
    low, high = sorted((low, high))
    _, rollout, (verdict,), _ = played(env, "right", [])
    task = next(task for task in env.tasks() if task.task_id == "right")
    weights = []
    for confidence in (low, high):
        found = Verdict(0, False, False, False, confidence, verdict.evidence)
        labels = diagnose(env, task, rollout, [found])
        judged = Judged(rollout, (found,), tuple(labels), False, 0.0)
        (row,) = turn_weights(judged, -1.0, {0: 3}, TrainParams(weights=granularity, alpha=0.0), Factors())
        assert row.weight == pytest.approx(1 + confidence * (1.5 - 1))  # 1.5: utility of missing_tool_call
        weights.append(row.weight)
    assert weights[0] <= weights[1]


# The judge.


class Judge(BaseHTTPRequestHandler):
    """A chat-completions server that answers what it is told to, and keeps what it was asked."""

    asked: list[dict] = []
    answer: object = ""
    status = 200

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Judge.asked.append({"path": self.path, "key": self.headers.get("Authorization"), **body})
        answer = Judge.answer if isinstance(Judge.answer, bytes) else json.dumps(
            {"choices": [{"message": {"role": "assistant", "content": Judge.answer}}]}).encode()  # fmt: skip
        self.send_response(Judge.status)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_): ...


def judge_at(url, cache, **more):
    """A judge that nothing has checked yet."""
    return JudgeParams.model_construct(url=url, cache=str(cache), **{"model": "m", **more})


@pytest.fixture
def server(tmp_path):
    http = HTTPServer(("127.0.0.1", 0), Judge)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    Judge.asked, Judge.status = [], 200
    yield judge_at(f"http://127.0.0.1:{http.server_port}/v1", tmp_path / "judge", seconds=5.0)
    http.shutdown()
    http.server_close()


TURN = Played("put a", (PUT,), (Result("a 1", "a 1"),), {}, {"box": {"a": 1}})


def test_a_judge_is_asked_once_at_temperature_zero_and_kept(server, monkeypatch):
    Judge.answer = 'Well: {"valid": true, "confidence": 0.8, "reason": "done"}'
    assert judge(server, TURN) == judge(server, TURN) == (True, 0.8, "done")
    (asked,) = Judge.asked
    assert (asked["path"], asked["temperature"], asked["model"], asked["key"]) == ("/v1/chat/completions", 0, "m", None)
    assert '"a 1"' in asked["messages"][1]["content"] and "put a" in asked["messages"][1]["content"]
    assert judge(judge_at("http://127.0.0.1:9", server.cache), TURN)[0]  # no server is needed any more
    monkeypatch.setenv("THE_KEY", "s3cret")
    keyed = judge_at(server.url, server.cache, model="other", key_env="THE_KEY")
    judge(keyed, TURN)
    assert Judge.asked[-1]["key"] == "Bearer s3cret"
    assert not any("s3cret" in path.read_text() for path in Path(server.cache).iterdir())


def test_the_judges_confidence_reaches_the_verdict(env, server, monkeypatch):
    Judge.answer = '{"valid": false, "confidence": 0.7, "reason": "nothing was put"}'
    monkeypatch.setattr(env, "judge", server)
    _, _, (verdict,), labels = played(env, "judge", [Call("put", {"key": "z"})])
    assert (verdict.valid, verdict.confidence) == (False, 0.7)
    assert verdict.evidence == {"graded": "judge", "reason": "nothing was put"}
    assert [(d.label, d.confidence) for d in labels] == [("state_mismatch", 0.7)]
    Judge.answer = "I would rather not say."
    _, _, (verdict,), labels = played(env, "judge", [PUT])
    assert "holds no verdict" in verdict.evidence["checker_error"] and labels[0].label == "checker_error"


@pytest.mark.parametrize(
    ("status", "answer", "says"), [(500, "", "500"), (200, b"<html>", "no chat completion"), (404, "", "404")]
)
def test_a_server_that_does_not_answer_is_one_clear_error(server, status, answer, says):
    Judge.status, Judge.answer = status, answer
    with pytest.raises(DependencyError, match=says):
        judge(server, TURN)
    assert not Path(server.cache).exists()


def test_an_unreachable_judge_is_one_clear_error(env, tmp_path):
    with pytest.raises(DependencyError, match="what it has answered is kept"):
        played(env, "judge", [PUT])
    with pytest.raises(DependencyError, match="NO_SUCH_KEY is not set"):
        ask(judge_at("http://127.0.0.1:9", tmp_path, key_env="NO_SUCH_KEY"), request_of("m", TURN))
    with pytest.raises(ParamError, match="begins with http"):
        ask(judge_at("file:///etc/passwd", tmp_path), request_of("m", TURN))


SHAPED = {"valid": st.booleans() | st.integers()}, {"confidence": st.floats() | st.integers() | st.text()}


@given(st.text(max_size=40) | st.builds(json.dumps, st.fixed_dictionaries(SHAPED[0], optional=SHAPED[1])))
def test_any_answer_is_a_verdict_or_unreadable(text):
    try:
        valid, confidence, _ = read_verdict(text)
    except Unreadable:
        return
    assert valid in (True, False) and LEAST <= confidence <= 1


def test_an_answer_without_a_confidence_is_unsure():
    assert read_verdict('{"valid": true}') == (True, UNSURE, "")


def test_a_checker_must_be_there(env):
    assert env.checker("_right")(Played("", (), (), {}, {"box": {"a": 1}}))
    for name in ("nobody", "graded_tools:nobody", "no_such_module:f"):
        with pytest.raises(ParamError, match="nobody|no_such_module"):
            env.checker(name)
