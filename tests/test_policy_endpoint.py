"""endpoint: a served model plays shop tasks over HTTP; what was answered once is not asked again."""

import json
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from served_model import FakeChat, serving

from seal.core.errors import ArtifactError, DependencyError, ParamError
from seal.core.labels import DEFAULT_PRIORITY
from seal.core.seeds import RoundKey
from seal.core.types import Call
from seal.diagnose.judge import judge
from seal.env.shop import ShopEnv
from seal.interface.state import InterfaceState
from seal.policy import load_policy
from seal.policy.base import Limits
from seal.policy.endpoint import ByteCodec, EndpointPolicy
from seal.policy.start import write_start
from seal.rollout.engine import Request, play
from seal.settings.play import CollectParams
from seal.settings.policies import EndpointParams
from seal.settings.train import TrainParams
from seal.tools.parse import format_calls
from seal.train.loop import train_round
from seal.train.on_policy import OnPolicy

ENV = ShopEnv(train=6, dev=1, test=1)
TASKS = [task for task in ENV.tasks() if task.split == "train" and task.category == "base"][:4]


def said(text, finish="stop", **message):
    return 200, {"choices": [{"message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}]}


def gold(body):
    """Answers each request with the gold call that is due: the results so far tell where the turn stands."""
    asked = [m["content"] for m in body["messages"] if m["role"] == "user"]
    told = [text.startswith("<tool_response>") for text in asked]
    since = told[::-1].index(False)  # results since the user spoke
    turn = told.count(False) - 1
    first = next(text for text, result in zip(asked, told, strict=True) if not result)
    task = next(task for task in TASKS if first == task.turns[0].message)
    calls = task.turns[turn].gold
    return said(format_calls(calls[since : since + 1], "qwen_xml") or "Done.")


def policy_at(url, tmp_path, **more):
    return EndpointPolicy(EndpointParams(url=url, model="big", cache=str(tmp_path / "cache"), **more))


def requests(n=2):
    return [Request(f"{t.task_id}-{i}", t, i, seed=100 * k + i) for k, t in enumerate(TASKS) for i in range(n)]


def test_a_served_model_plays_is_judged_and_is_not_asked_twice(tmp_path, monkeypatch):
    fake = FakeChat(gold)
    monkeypatch.setenv("MY_KEY", "secret")
    with serving(fake) as url:
        policy = policy_at(url, tmp_path, key_env="MY_KEY")
        rollouts = play(ENV, policy, requests(), limits=Limits(200, 4096), temperature=0.7)
    assert all(j.success for j in judge(ENV, rollouts, DEFAULT_PRIORITY))
    assert {r.policy_hash for r in rollouts} == {policy.hash} and policy.hash.startswith("endpoint:")
    assert fake.key == "Bearer secret" and "secret" not in "".join(p.read_text() for p in tmp_path.rglob("*.json"))
    paths, bodies = zip(*fake.requests, strict=True)
    assert set(paths) == {"/v1/chat/completions"}
    assert len({body["seed"] for body in bodies}) > 1 and {body["temperature"] for body in bodies} == {0.7}
    assert bodies[0]["messages"][0]["role"] == "system" and "Tools" in bodies[0]["messages"][0]["content"]
    again = play(ENV, policy, requests(), limits=Limits(200, 4096), temperature=0.7)  # the server is gone
    assert again == rollouts


def test_it_is_opened_from_params_and_cannot_be_trained(tmp_path):
    write_start({"kind": "endpoint", "url": "http://localhost:1/v1", "model": "m"}, None, tmp_path / "p")
    policy = load_policy(tmp_path / "p")
    elsewhere = EndpointParams(url="http://elsewhere:2/v1", model="m")
    assert policy.hash == EndpointPolicy(elsewhere).hash  # where is not what
    assert policy.hash != EndpointPolicy(EndpointParams(url="http://localhost:1/v1", model="n")).hash
    with pytest.raises(ParamError, match="no weights"):
        play = OnPolicy(ENV, InterfaceState(), CollectParams(), (), RoundKey("r1", 1, 0))
        train_round(policy, [], play, TrainParams())
    about = json.loads((tmp_path / "p/policy.json").read_text())
    (tmp_path / "p/policy.json").write_text(json.dumps({**about, "model": "other"}))
    with pytest.raises(ArtifactError, match="recorded"):
        load_policy(tmp_path / "p")
    for bad in ({"url": "localhost", "model": "m"}, {"url": "http://x", "model": ""}):
        with pytest.raises(ParamError):
            EndpointPolicy(EndpointParams.model_construct(**bad))


def test_calls_that_the_server_took_out_are_put_back_and_limits_are_stop_reasons(tmp_path):
    call = {"function": {"name": "find_order", "arguments": '{"order": "ORD-1"}'}}
    too_long = {"error": {"message": "This model's maximum context length is 4096 tokens."}}
    for reply, stop, calls in (
        (said(None, "tool_calls", tool_calls=[call]), "step_limit", (Call("find_order", {"order": "ORD-1"}),)),
        (said("I was about to", "length"), "turn_token_limit", ()),
        ((400, too_long), "context_overflow", None),
    ):
        with serving(FakeChat(lambda _, reply=reply: reply)) as url:
            policy = policy_at(url, tmp_path / stop)
            (rollout,) = play(ENV, policy, requests(1)[:1])
        assert rollout.stop_reason == stop
        assert calls is None or rollout.steps[0].calls == calls


def test_requests_at_once_are_bounded(tmp_path):
    lock, at_once = threading.Lock(), [0, 0]  # now, at most

    def reply(body):
        with lock:
            at_once[0] += 1
            at_once[1] = max(at_once)
        time.sleep(0.02)
        with lock:
            at_once[0] -= 1
        return said("Done.")

    with serving(FakeChat(reply)) as url:
        play(ENV, policy_at(url, tmp_path, parallel=3), requests(8), temperature=0.7)
    assert at_once == [0, 3]


def test_an_endpoint_that_fails_is_one_error_and_keeps_what_was_answered(tmp_path):
    for reply in ((401, {"error": "no key"}), (200, {"nothing": 1}), (500, {})):
        with serving(FakeChat(lambda _, reply=reply: reply)) as url, pytest.raises(DependencyError, match="endpoint"):
            play(ENV, policy_at(url, tmp_path), requests(1))
    with pytest.raises(DependencyError, match="start the server"):
        play(ENV, policy_at("http://127.0.0.1:9/v1", tmp_path, seconds=1.0), requests(1))


PARAMS = """run: {{seed: 1}}
envs:
  shop: {{seed: 0, train: 4, dev: 1, test: 1}}
starts:
  e0:
    env: shop
    recipe: 1
    policy: {{kind: endpoint, url: "{url}", model: big}}
    evaluate: {{split: test, tasks: 0, trials: 1, temperature: 0.0, measure_on: true,
      max_action_tokens: 9, context: 16}}
defaults:
  collect: {{tasks: 3, group_size: 4, evolved: 2}}
  train: {{algorithm: none}}
rounds:
"""


@pytest.mark.slow
def test_a_whole_round_runs_with_a_served_model(tmp_path):
    """Collect, verify, diagnose, evolve and evaluate over HTTP; collected once more, nothing is asked."""
    from workspaces import command, dvc, seal, workspace

    from seal.store.tables import read_table

    fake = FakeChat(lambda body: said('<tool_call>\n{"name": "cancel_order", "arguments": {"x": 1}}\n</tool_call>'))
    root = tmp_path / "w"
    with serving(fake) as url:
        workspace(root, PARAMS.format(url=url), plain=False)
        seal(root, "round", "new")
        dvc(root, "repro")
    asked = len(fake.requests)
    command(root, sys.executable, "stages/collect.py", "e1")  # the server is gone
    assert asked == len(fake.requests) > 0
    metrics = json.loads((root / "data/rounds/e1/metrics.json").read_text())
    assert metrics["policy_hash"].startswith("endpoint:") and metrics["strict"]["mean"] == 0.0
    labels = read_table(root / "data/rounds/e1/diagnose/diagnoses.parquet", "diagnoses")["label"].to_pylist()
    assert "invalid_tool_call" in labels or "argument_mismatch" in labels


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(texts, st.lists(st.tuples(texts, texts), max_size=4), texts)
def test_messages_come_back_whatever_their_text_looks_like(system, exchanges, last):
    codec = ByteCodec()
    ids = codec.prompt((), [system])
    expected = []
    for message, answer in exchanges:
        ids += codec.user(message, ()) + codec.encode_action(answer)
        expected += [("user", message), ("assistant", answer)]
    ids += codec.results([last])
    found = [(m["role"], m["content"]) for m in codec.messages(ids)]
    assert found[0][0] == "system" and found[0][1].endswith(f"- {system}")
    assert found[1:-1] == expected and last in found[-1][1] and found[-1][0] == "user"


@given(st.text(max_size=400), st.integers(32, 200))
def test_long_results_lose_their_middle(text, most):
    cut = ByteCodec(most).cut(text)
    assert cut == text if len(text) <= most else len(cut) < most + 20 and cut.endswith(text[-(most // 3) :])
