"""Tools of a real MCP server over stdio: fresh worlds, a server that dies or hangs, and the whole round trip."""

import json
import sys

import pytest
from workspaces import ROOT

from seal.core.errors import DependencyError, ParamError
from seal.core.seeds import RoundKey
from seal.core.types import Call
from seal.env import load_env
from seal.env.custom import CustomEnv
from seal.policy.scripted import GoldPolicy
from seal.rollout.engine import play
from seal.rollout.plan import requests_for
from seal.settings.play import CollectParams
from seal.verify.rollout import success
from seal.verify.turns import verify

pytest.importorskip("mcp")
pytestmark = pytest.mark.slow
COMMAND = [sys.executable, str(ROOT / "tests" / "mcp_counter.py")]
TASKS = [
    {
        "id": name,
        "state": {"counters_at_start": {name: i}},
        "turns": [{"user": f"count {name}", "gold": [f"count(name={name!r})"]}],
    }
    for i, name in enumerate("abc")
]


def world(env: CustomEnv, state: dict | None = None):
    return env.tools.open(state or {})


@pytest.fixture(scope="module")
def counter():
    pytest.importorskip("mcp")
    command = [sys.executable, str(ROOT / "tests" / "mcp_counter.py")]
    mcp = {"command": command, "reset": "start", "state": "snapshot", "seconds": 2.0}
    return load_env("custom", mcp=mcp, tasks="examples/none.yaml")


def test_a_server_is_an_environment(counter):
    assert [doc.name for doc in counter.tools.docs] == ["count", "hang", "die"]
    name, by = counter.tools.docs[0].params
    assert (name.type, name.required, by.type, by.required, by.default) == ("string", True, "integer", False, 1)
    one, two = world(counter, {"counters_at_start": {"b": 1}}), world(counter)
    assert one.call(Call("count", {"name": "b", "by": 2})).raw == "b is 3"
    assert (one.state(), two.state()) == ({"b": 3}, {"a": 0})
    for call, kind in (
        (Call("count", {"name": "z"}), "not_found"),
        (Call("count", {}), "missing_argument"),
        (Call("count", {"name": 1}), "wrong_type"),
        (Call("count", {"name": "b", "x": 1}), "unexpected_argument"),
        (Call("start", {}), "unknown_tool"),
    ):
        assert two.call(call).error_kind == kind
    del one
    assert world(counter).state() == {"a": 0}  # the server that is used again was reset


def test_a_server_that_dies_is_an_error_result_in_its_own_rollout(counter):
    ended, alive = world(counter), world(counter)
    assert (ended.call(Call("die", {})).error_kind, ended.call(Call("count", {"name": "a"})).error_kind) == (
        "other",
    ) * 2
    assert ended.state() == {"server": "ended"} and alive.state() == {"a": 0}


def test_a_server_that_hangs_is_a_timeout(counter):
    hung = world(counter)
    hung.state()
    assert hung.call(Call("hang", {})).error_kind == "timeout"
    assert world(counter).call(Call("count", {"name": "a"})).raw == "a is 1"


def test_a_command_that_is_no_server_is_one_clear_error():
    with pytest.raises(DependencyError, match="ZeroDivisionError"):
        _ = load_env("custom", mcp={"command": [sys.executable, "-c", "1 / 0"]}).tools


def test_tasks_of_a_server_are_played_and_verified(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.yaml").write_text(json.dumps(TASKS))
    env = load_env("custom", mcp={"command": COMMAND, "reset": "start", "state": "snapshot", "servers": 2})
    env.prove()
    requests = requests_for(env.tasks(), CollectParams(group_size=2), RoundKey("r", 1, 0))
    for request, rollout in zip(requests, play(env, GoldPolicy("qwen_xml"), requests)):
        assert success(request.task, verify(env, request.task, rollout.calls_by_turn(1)), rollout)
    again = verify(env, env.tasks()[2], [[Call("count", {"name": "c", "by": 2})]])
    assert not again[0].valid and again[0].evidence["attribute"] == "c"
    assert len(env.tools._servers) <= 5  # two played at once, and one or two for the verifier


def test_without_a_reset_every_world_is_a_process_and_takes_no_state():
    env = load_env("custom", mcp={"command": COMMAND})
    one, two = world(env), world(env)
    assert [w.call(Call("count", {"name": "a"})).raw for w in (one, two)] == ["a is 1", "a is 1"]
    assert one.state() == {}
    with pytest.raises(ParamError, match="envs.custom.mcp.reset"):
        world(env, {"x": 1})
    with pytest.raises(ParamError, match="no such tool; the server has: count"):
        _ = load_env("custom", mcp={"command": COMMAND, "reset": "nope"}).tools
