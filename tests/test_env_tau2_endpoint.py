"""A user played by a served model, against a server on this machine: its messages, its acts, replays without it."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from tau2_cases import env as scripted
from tau2_cases import task

from seal.core.errors import ArtifactError, ParamError
from seal.core.types import Call
from seal.env.tau2 import Tau2Env
from seal.env.tau2.endpoint import GREETING, KEY_VARIABLE, Endpoint
from seal.env.tau2.user import UserFailed, calls_in
from seal.policy.scripted import GoldPolicy, ReplayPolicy
from seal.rollout.engine import Request, play
from seal.verify.rollout import verify_rollout

STOP = "Thank you. ###STOP###"


def text(content):
    return {"choices": [{"message": {"role": "assistant", "content": content}}]}


def acts(*done):
    calls = [
        {"id": f"c{i}", "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))}}
        for i, call in enumerate(done)
    ]
    return {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": calls}}]}


def customer(request):
    """A model of a user: greets back with its seed, does on its phone what it is asked to, and then leaves."""
    last = request["messages"][-1]
    if last["role"] == "tool":
        return text("It is done, what now?")
    if last["content"] == GREETING:
        return text(f"Hello, number {request['seed']} here.")
    asked = [tool["function"]["name"] for tool in request.get("tools", ())]
    wanted = calls_in(last["content"], asked)
    return acts(*wanted) if wanted else text(STOP)


@contextmanager
def serving(answer):
    """A chat-completions server; yields its URL and the (headers, request) that it got."""
    got = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            got.append((dict(self.headers), request))
            found = answer(request) if self.path == "/v1/chat/completions" else 404
            status, body = (found, b"no") if isinstance(found, int) else (200, json.dumps(found).encode())
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def live(url, cache, domain="telecom"):
    return Tau2Env(domain=domain, user="endpoint", url=url, model="customer", cache=str(cache))


def held(environment, tasks, policy=None, seed=7):
    requests = [Request(f"{i:016x}", one, 0, seed) for i, one in enumerate(tasks)]
    return play(environment, policy or GoldPolicy("qwen_xml"), requests)


def test_the_user_acts_and_the_reward_is_the_official_one(tmp_path):
    """Gold conversations of telecom, the user's tools run by the model."""
    with serving(customer) as (url, got):
        environment = live(url, tmp_path)
        tasks = environment.tasks()[:20]
        rollouts = held(environment, tasks)
    assert {rollout.stop_reason for rollout in rollouts} == {"finished"}
    assert any(message["role"] == "tool" for _, request in got for message in request["messages"])
    for one, rollout in zip(tasks, rollouts, strict=True):
        assert rollout.steps[0].text == GREETING and rollout.steps[0].results[0].shown == "Hello, number 7 here."
        assert all(len(step.calls) == len(step.results) for step in rollout.steps)
        assert rollout.steps[-1].results[0].shown == "" and STOP in rollout.steps[-1].results[0].raw
        (verdict,) = verify_rollout(environment, one, rollout)
        assert verdict.valid, verdict.evidence


def test_trials_are_replayed_without_the_server(tmp_path):
    tasks = scripted("retail").tasks()[:3]
    with serving(customer) as (url, got):
        environment = live(url, tmp_path, "retail")
        tasks = environment.tasks()[:3]
        first, asked = [held(environment, tasks, seed=seed) for seed in (1, 2)], len(got)
        assert asked == 12 and [held(environment, tasks, seed=seed) for seed in (1, 2)] == first
        assert len(got) == asked
    assert first[0] != first[1]
    assert [held(live(url, tmp_path, "retail"), tasks, seed=seed) for seed in (1, 2)] == first
    for rollout in first[0]:
        assert verify_rollout(environment, tasks[[t.task_id for t in tasks].index(rollout.task_id)], rollout)[0].valid


def test_what_the_model_is_asked(tmp_path, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "a key")
    with serving(customer) as (url, got):
        held(live(url, tmp_path, "airline"), [task("airline", "0")], seed=2**31 + 5)
        held(live(url, tmp_path), live(url, tmp_path).tasks()[:1])
    headers, request = got[0]
    assert headers["Authorization"] == "Bearer a key"
    assert (request["model"], request["seed"], request["temperature"]) == ("customer", 5, 0.0)
    system, greeting = request["messages"]
    assert system["role"] == "system" and "EHGLP3" in system["content"] and "###STOP###" in system["content"]
    assert greeting == {"role": "user", "content": GREETING} and "tools" not in request
    assert [message["role"] for message in got[1][1]["messages"]] == ["system", "user", "assistant", "user"]
    assert len(got[-1][1]["tools"]) == 30 and "You have some tools" in got[-1][1]["messages"][0]["content"]
    assert not [path for path in tmp_path.iterdir() if "a key" in path.read_text() or path.suffix != ".json"]


@pytest.mark.parametrize(
    "answer",
    [404, 503, {"choices": []}, {"error": "x"}, text(""), text(None), acts(*[Call("check_status_bar", {})] * 2), [1]],
)
def test_a_user_who_fails_is_not_the_policys_fault(answer, tmp_path):
    """The last but one acts for ever and never speaks."""
    with serving(lambda request: answer) as (url, got):
        environment = live(url, tmp_path)
        (rollout,) = held(environment, environment.tasks()[:1])
    assert rollout.stop_reason == "env_error" and len(got) <= 20
    (verdict,) = verify_rollout(environment, environment.tasks()[0], rollout)
    assert not verdict.valid


def test_without_a_server(tmp_path):
    environment = live("http://127.0.0.1:9/v1", tmp_path, "airline")
    (rollout,) = held(environment, environment.tasks()[:1])
    assert rollout.stop_reason == "env_error" and not list(tmp_path.iterdir())


def test_a_broken_kept_answer_is_told(tmp_path):
    with serving(customer) as (url, _):
        environment = live(url, tmp_path, "airline")
        held(environment, environment.tasks()[:1])
        for path in tmp_path.iterdir():
            path.write_text("{")
        with pytest.raises(ArtifactError):
            held(environment, environment.tasks()[:1])


def test_the_policy_may_speak_plainly(tmp_path):
    """Text without a call reaches the user, and reads the same after a replay."""
    with serving(customer) as (url, got):
        environment = live(url, tmp_path, "airline")
        one = environment.tasks()[0]
        policy = ReplayPolicy({f"{one.task_id}/0": [["I am sorry, I cannot."]]}, "qwen_xml")
        (rollout,) = held(environment, [one], policy)
    assert [call for step in rollout.steps for call in step.calls] == [
        Call("respond", {"content": GREETING}),
        Call("respond", {"content": "I am sorry, I cannot."}),
    ]
    assert got[-1][1]["messages"][-1] == {"role": "user", "content": "I am sorry, I cannot."}
    assert rollout.stop_reason == "finished" and environment.open(one).greeting == ()


def test_options(tmp_path):
    for url, model in (("ftp://x", "m"), ("file:///etc/passwd", "m"), ("http://x", "")):
        with pytest.raises(ParamError):
            Endpoint(url, model, tmp_path)
    with pytest.raises(UserFailed):
        Endpoint("http://127.0.0.1:9", "m", tmp_path).message({"messages": []})
