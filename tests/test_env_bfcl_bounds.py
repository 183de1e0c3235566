"""Whatever a policy calls, a world answers within two seconds and goes on; in the main thread and in any other."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from bfcl_cases import CASES
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.core.types import Call
from seal.env import load_env
from seal.env.bfcl import bounds
from seal.env.bfcl.instances import signatures
from seal.env.bfcl.package import MODULES
from seal.env.bfcl.session import BfclSession
from seal.env.bfcl.values import MAX_DEPTH, MAX_ENTRIES, entries
from seal.env.limit import TimedOut, time_limit
from seal.verify.turns import digest, verify

ENV = load_env("bfcl")
WITHIN = CASES["exec_power_dos"]["expected"]["within_seconds"]
FILES = {
    "root": {"work": {"type": "directory", "contents": {name: {"type": "directory", "contents": {}} for name in "ab"}}}
}
HEX = int("f" * 3500, 16)
DIGITS = "7" * 900

ENDLESS = [
    *((call["name"], call["args"]) for call in CASES["exec_power_dos"]["input"]["calls"]),
    ("power", {"base": -10, "exponent": 20_000_000}),
    ("power", {"base": HEX, "exponent": HEX}),
    ("power", {"base": 10**4000, "exponent": 10**9}),
    ("round_number", {"number": 5, "decimal_places": -(10**9)}),
    ("logarithm", {"value": 7, "base": 3, "precision": 10**9}),
    ("logarithm", {"value": 7, "base": 3, "precision": "1000000000"}),
    ("logarithm", {"value": 7, "base": 3, "precision": 1e9}),
    ("logarithm", {"value": "1e9999999999", "base": 3, "precision": 5}),
    ("logarithm", {"value": "1" * 9000 + "j1", "base": 3, "precision": 5}),
    ("square_root", {"number": 7, "precision": 10**8}),
]
LONG = [  # much work, but bounded: a result or an error, in time
    ("power", {"base": 1, "exponent": HEX}),
    ("power", {"base": HEX, "exponent": -HEX}),
    ("power", {"base": 1.0000001, "exponent": 10**300}),
    ("multiply", {"a": HEX, "b": HEX}),
    ("round_number", {"number": HEX, "decimal_places": -40_000}),
    ("logarithm", {"value": f"1/{DIGITS}", "base": DIGITS, "precision": 5000}),
    ("logarithm", {"value": DIGITS + "j1", "base": "1e99999", "precision": 5000}),
    ("square_root", {"number": HEX, "precision": 5000}),
    ("standard_deviation", {"numbers": [HEX] * 25}),
    ("mean", {"numbers": [0.1] * 30_000}),
    ("sum_values", {"numbers": [[]] * 30_000}),
]


def elsewhere(body):
    """The result of a body that runs in another thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(body).result(timeout=60)


WHERE = pytest.mark.parametrize("where", [lambda body: body(), elsewhere], ids=["main thread", "other thread"])


def timed(session, name, arguments):
    started = time.monotonic()
    result = session.call(Call(name, arguments))
    assert time.monotonic() - started < WITHIN, name
    return result


@WHERE
@pytest.mark.parametrize(("tool", "arguments"), ENDLESS)
def test_an_endless_call_is_an_error_row_and_the_worker_lives(tool, arguments, where):
    session = BfclSession(["MathAPI"], {})
    result = where(lambda: timed(session, tool, arguments))
    assert result.raw.startswith("Error during execution: ") and result.error_kind
    assert bounds.refusal(tool, arguments)  # by sizes alone, so everywhere alike
    assert where(lambda: timed(session, "add", {"a": 1, "b": 2})).raw == '{"result": 3}'


@WHERE
@pytest.mark.parametrize(("tool", "arguments"), LONG)
def test_a_long_call_ends_in_time(tool, arguments, where):
    assert not bounds.refusal(tool, arguments)
    where(lambda: timed(BfclSession(["MathAPI"], {}), tool, arguments))


def test_precisions_that_are_no_numbers_are_told_by_the_tool():
    for precision in ("many", float("inf"), float("nan"), None, [5]):
        assert timed(
            BfclSession(["MathAPI"], {}), "logarithm", {"value": 7, "base": 3, "precision": precision}
        ).error_kind


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from((0, -1, 2**64, HEX, -HEX, 10**18, 1e308, -1e-308, float("inf"), float("nan"))),
    st.sampled_from(("", "x", "..", "/", "9" * 1000, "1e99999", "1" * 999 + "j", "a" * 20_000, "\ud800", "{0}", "%s")),
    st.sampled_from(([], ["x"] * 5000, [HEX] * 20, {}, {"a": [1]}, [[[]]], ())),
)


@pytest.mark.parametrize("name", MODULES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_every_tool_answers_hostile_values_in_time(name, data):
    """In another thread, where there is no alarm; state and results stay JSON, and the world goes on."""
    long_context = data.draw(st.booleans())
    session = BfclSession([name], {name: FILES if name == "GorillaFileSystem" else {}}, long_context)
    tools = data.draw(st.lists(st.sampled_from(sorted(signatures(name))), min_size=1, max_size=8))
    calls = [(tool, {parameter: data.draw(VALUES) for parameter in signatures(name)[tool]}) for tool in tools]

    def play():
        for tool, arguments in calls:
            assert isinstance(timed(session, tool, arguments).raw, str)
        return digest(session.state())

    assert elsewhere(play)


def doubling(levels):
    """Calls that build a tree whose walk doubles with every level, by copies of copies."""
    for k in range(levels):
        yield from (
            Call("mkdir", {"dir_name": f"d{k + 1}"}),
            Call("cp", {"source": f"d{k}", "destination": f"copy{k}"}),
            Call("cp", {"source": f"d{k}", "destination": f"d{k + 1}"}),
            Call("cp", {"source": f"copy{k}", "destination": f"d{k + 1}"}),
        )


@WHERE
def test_a_tree_that_doubles_is_walked_by_nobody(where):
    session = BfclSession(["GorillaFileSystem"], {"GorillaFileSystem": FILES})

    def play():
        session.raw_results([Call("mkdir", {"dir_name": "d0"}), *doubling(40)])
        assert entries(session._parts["GorillaFileSystem"].root) == MAX_ENTRIES
        for tool, arguments in (("find", {"path": ".", "name": "x"}), ("du", {})):
            assert timed(session, tool, arguments).raw.endswith(bounds.TOO_DEEP)
        started = time.monotonic()
        digest(session.state())
        assert time.monotonic() - started < WITHIN
        return session.call(Call("pwd", {})).error_kind

    assert where(play) == ""


@WHERE
def test_directories_without_an_end_in_depth(where):
    session = BfclSession(["GorillaFileSystem"], {"GorillaFileSystem": FILES})
    down = [Call("mkdir", {"dir_name": "d"}), Call("cd", {"folder": "d"})]

    def play():
        session.raw_results(down * 2000)
        assert timed(session, "pwd", {}).error_kind == ""
        session.raw_results([Call("cd", {"folder": "/"})])
        assert timed(session, "find", {"path": ".", "name": "x"}).raw.endswith(bounds.TOO_DEEP)
        return digest(session.state())

    assert where(play)


def test_a_walk_that_is_deep_but_bounded_runs():
    session = BfclSession(["GorillaFileSystem"], {"GorillaFileSystem": FILES})
    session.raw_results([Call("mkdir", {"dir_name": "d"}), Call("cd", {"folder": "d"})] * (MAX_DEPTH - 2))
    session.raw_results([Call("cd", {"folder": "/"})])
    assert len(json.loads(timed(session, "find", {"path": ".", "name": "d"}).raw)["matches"]) == MAX_DEPTH - 2


def test_a_tree_taken_out_of_the_world_is_not_walked_either():
    session = BfclSession(["GorillaFileSystem"], {"GorillaFileSystem": FILES})
    session.raw_results([
        Call("cd", {"folder": "a"}),
        Call("mkdir", {"dir_name": "inner"}),
        Call("cd", {"folder": ".."}),
        Call("cp", {"source": "a", "destination": "c"}),
        Call("rm", {"file_name": "a"}),
        Call("cd", {"folder": "c"}),
        Call("cd", {"folder": "inner"}),
        Call("cd", {"folder": ".."}),  # the parent is still the directory that was removed
        Call("mkdir", {"dir_name": "d0"}),
        *doubling(40),
    ])  # fmt: skip
    assert timed(session, "du", {}).raw.endswith(bounds.TOO_DEEP)


@pytest.mark.parametrize("nest", [lambda value: [value], lambda value: {"a": value}, lambda value: (value,)])
def test_deeply_nested_arguments_are_an_error_row(nest):
    value = 1
    for _ in range(bounds.MAX_NESTING):
        value = nest(value)
    session = BfclSession(["TicketAPI"], {})
    assert session.call(Call("create_ticket", {"title": value})).raw.find(bounds.TOO_DEEP) < 0
    for _ in range(500):
        value = nest(value)
        assert session.call(Call("create_ticket", {"title": value})).raw.endswith(bounds.TOO_DEEP)


def test_verdicts_of_hostile_rollouts_come_in_time():
    task = next(task for task in ENV.tasks() if task.initial_state["classes"] == ["GorillaFileSystem"])
    down = [Call("mkdir", {"dir_name": "d"}), Call("cd", {"folder": "d"})]
    walk = Call("find", {"path": ".", "name": "x"})
    for hostile in ([*down * 1000, walk], [Call("mkdir", {"dir_name": "d0"}), *doubling(40), walk]):
        started = time.monotonic()
        verdicts = verify(ENV, task, [hostile, *(list(turn.gold) for turn in task.turns[1:])])
        assert time.monotonic() - started < 2 * WITHIN
        assert not verdicts[0].valid and json.dumps([dict(verdict.evidence) for verdict in verdicts])


def test_a_world_takes_so_many_calls_and_returns_so_many_characters(monkeypatch):
    monkeypatch.setattr(bounds, "MAX_CALLS", 3)
    session = BfclSession(["MathAPI"], {})
    kinds = [session.call(Call("add", {"a": 1, "b": 2})).error_kind for _ in range(5)]
    assert kinds == ["", "", "", "other", "other"]
    monkeypatch.setattr(bounds, "MAX_RESULTS", 30)
    session = BfclSession(["MathAPI"], {})
    kinds = [session.call(Call("add", {"a": 1, "b": 10**9})).error_kind for _ in range(3)]
    assert kinds == ["", "", "other"]


@WHERE
def test_a_loop_in_python_is_stopped(where):
    def loop():
        try:
            with time_limit(0.05):
                while True:
                    pass
        except TimedOut:
            return "stopped"

    assert [where(loop) for _ in range(3)] == ["stopped"] * 3


def test_a_limit_is_over_when_its_body_is():
    """No exception comes late: not after a body that ended just in time, and none into another thread."""

    def body(n):
        for _ in range(n):
            try:
                with time_limit(0.002):
                    end = time.thread_time() + 0.002
                    while time.thread_time() < end:
                        pass
            except TimedOut:
                pass
        return sum(range(100_000))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(body, [40] * 4)) == [sum(range(100_000))] * 4
    assert body(40) == sum(range(100_000))


def test_waiting_is_not_computing():
    def wait():
        with time_limit(0.1):
            time.sleep(0.3)
        return "waited"

    assert wait() == elsewhere(wait) == "waited"


def test_watching_threads_end():
    before = threading.active_count()
    for _ in range(20):
        elsewhere(lambda: timed(BfclSession(["MathAPI"], {}), "power", {"base": 2, "exponent": 3}))
    time.sleep(0.2)
    assert threading.active_count() <= before + 1
