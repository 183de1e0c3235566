"""Tools in a process of their own: what one does, returns or keeps is a row, and ends or stops nothing of ours."""

import json
import os
import subprocess
import sys
import time

import pytest
from custom_cases import env_of, session
from workspaces import ROOT

from seal.core.errors import ParamError
from seal.core.types import Call
from seal.env.custom.plain_json import to_json
from seal.policy.scripted import ReplayPolicy
from seal.rollout.engine import Request, play
from seal.verify.rollout import verify_rollout

TOOLS = """
import os, signal, time, threading
from typing import Any

kept: list[Any] = []


class Odd:
    '''Raises whenever it is looked at.'''
    def _no(self, *a): raise RuntimeError("do not look")
    __class__ = property(_no)
    __str__ = __repr__ = __iter__ = __len__ = __bool__ = __eq__ = __getattr__ = _no
    __hash__ = None


class Text(str):
    def __str__(self): raise RuntimeError("no text")


class Mute(Exception):
    error_kind = []
    def __str__(self): raise RuntimeError("no words")


def _nested(n):
    value = []
    for _ in range(n):
        value = [value]
    return value


MADE = {"huge": lambda: 16 ** 100_000, "negative": lambda: -(16 ** 100_000), "nested": lambda: _nested(100_000),
        "odd": lambda: [Odd(), {"odd": Odd()}], "text": lambda: Text("said"), "nan": lambda: float("nan"),
        "cycle": lambda: kept.append(kept), "error": lambda: {"error": Odd()}, "surrogate": lambda: "\\ud800"}


def keep(what: str) -> str:
    kept.append(MADE[what]())
    return "kept"


def give(what: str) -> Any:
    return MADE[what]()


def swallow(n: int) -> str:
    while True:
        try:
            while True: pass
        except BaseException: pass


def end(how: str) -> str:
    kept.append(how)
    if how == "interrupt": raise KeyboardInterrupt("me")
    if how == "exit": os._exit(0)
    if how == "kill": os.kill(os.getpid(), signal.SIGKILL)
    if how == "wait": threading.Event().wait()
    if how == "power": return str(len(hex(7 ** (10 ** 9))))
    if how == "mute": raise Mute()
    raise GeneratorExit


def note(n: int, any: Any = None) -> int:
    kept.append(n)
    return len(kept)
"""
TASKS = """
- {id: one, turns: [{user: note it, gold: ["note(n=1)"]}]}
- {id: two, turns: [{user: note it, gold: ["note(n=2)"]}]}
- {id: three, turns: [{user: note it, gold: ["note(n=3)"]}]}
"""
VALUES = ("huge", "negative", "nested", "odd", "text", "nan", "cycle", "error", "surrogate")
ENDS = {"interrupt": ("other", "me"), "exit": ("other", "ended its process"), "kill": ("other", "ended its process"),
        "wait": ("timeout", "more than 0.1 seconds"), "power": ("timeout", "more than 0.1 seconds"),
        "mute": ("other", "Mute"), "generator": ("other", "GeneratorExit")}  # fmt: skip


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder := tmp_path_factory.mktemp("ends")))
        patch.setattr("seal.env.custom.worker.WAIT", 3.0)
        yield env_of(folder, TOOLS, TASKS, seconds=0.1)


@pytest.mark.parametrize("what", VALUES)
def test_a_value_of_any_shape_is_data(env, what):
    world = session(env)
    given, kept = world.call(Call("give", {"what": what})), world.call(Call("keep", {"what": what}))
    assert kept.raw == "kept" and (given.error_kind or given.raw)
    state = world.state()
    assert json.loads(json.dumps(state, allow_nan=False)) == state and len(state["kept"]) >= 1
    assert what == "nested" or to_json(state) == state


@pytest.mark.parametrize("how", [*ENDS, "swallow"])
def test_however_a_tool_ends_it_is_one_error_and_every_world_goes_on(env, how):
    world, other = session(env), session(env)
    assert [world.call(Call("note", {"n": n})).raw for n in (5, 6)] == ["1", "2"]
    assert other.call(Call("note", {"n": 7})).raw == "1"
    kind, said = ENDS.get(how, ("timeout", "more than 0.1 seconds"))
    call = Call("swallow", {"n": 1}) if how == "swallow" else Call("end", {"how": how})
    result = world.call(call)
    assert (result.error_kind, said in result.raw) == (kind, True), result.raw
    mine = [how] if kind == "other" and "process" not in said else []  # else what it did is undone
    assert other.state() == {"kept": [7]} and world.state() == {"kept": [5, 6, *mine]}
    assert other.call(Call("note", {"n": 8})).raw == "2"


def test_arguments_of_any_size_are_one_result(env):
    deep = []
    for _ in range(50_000):
        deep = [deep]
    for value in (16**100_000, deep, "\ud800", float("inf")):
        assert session(env).call(Call("note", {"n": 1, "any": value})).error_kind in ("", "other", "invalid_value")
    assert session(env).call(Call("note", {"n": 1})).raw == "1"


def test_a_rollout_with_them_is_played_and_judged(env):
    task = env.tasks()[0]
    said = ["[keep(what='huge')]", "[end(how='exit'), keep(what='odd')]", "[end(how='interrupt')]", "[note(n=1)]"]
    (rollout,) = play(env, ReplayPolicy({"one/0": [said]}, "pythonic"), [Request("r", task, 0, 0)])
    assert rollout.stop_reason == "finished" and len(rollout.steps) == 5
    assert [verdict.valid for verdict in verify_rollout(env, task, rollout)] == [False]


@pytest.mark.parametrize(
    ("tools", "value"),
    [("import os\nos._exit(0)", "ended its process (docs)"), ("raise KeyboardInterrupt", "KeyboardInterrupt"),
     ("import os\nx = 1\ndef state(): os._exit(0)\ndef f() -> int: ...", "ended its process")],
)  # fmt: skip
def test_a_module_at_fault_is_one_clear_error(tmp_path, monkeypatch, tools, value):
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ParamError) as told:
        session(env_of(tmp_path, tools, TASKS)).state()
    assert value in str(told.value) and told.value.remedy


def test_tools_end_with_us_also_where_they_hang_and_we_are_killed(tmp_path):
    (tmp_path / "hangs.py").write_text(
        "import os, threading\ndef hang(path: str) -> str:\n"
        "    open(path, 'w').write(str(os.getpid()))\n    threading.Event().wait()\n"
    )
    code = (
        "from pathlib import Path; from seal.core.types import Call; from seal.env.custom.worker import WorkerTools\n"
        f"WorkerTools('hangs', 60, Path({str(tmp_path)!r})).open({{}}).call(Call('hang', {{'path': 'pid'}}))"
    )
    ours = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)})
    file = tmp_path / "pid"
    assert _soon(lambda: file.exists() and file.read_text())
    ours.kill()
    ours.wait()
    assert _soon(lambda: not os.path.exists(f"/proc/{file.read_text()}"))


def _soon(is_so, seconds: float = 60.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until and not is_so():
        time.sleep(0.05)
    return bool(is_so())
