"""BFCL's tasks and worlds: counts, splits, wording, and that no session can change another."""

import decimal
import subprocess
import sys
import threading
import time
from collections import Counter

import mpmath
import pytest
from bfcl_cases import CASES, gold

from seal.core.errors import ParamError
from seal.core.types import Call
from seal.env import load_env
from seal.env.bfcl import BfclEnv
from seal.env.bfcl.bounds import refusal
from seal.env.bfcl.session import BfclSession
from seal.env.limit import TimedOut, time_limit
from seal.tools.parse import parse

ENV = load_env("bfcl")
TASKS = {task.task_id: task for task in ENV.tasks()}
FILES = {
    "root": {"work": {"type": "directory", "contents": {name: {"type": "directory", "contents": {}} for name in "ab"}}}
}


def results(session, *calls):
    return [session.call(Call(name, arguments)).raw for name, arguments in calls]


def test_800_tasks_with_the_published_counts():
    assert len(TASKS) == 800 and ENV.tasks() is ENV.tasks() and ENV.version
    assert set(Counter(task.category for task in TASKS.values()).values()) == {200}
    calls = Counter()
    for task in TASKS.values():
        calls[task.category] += sum(len(turn.gold) for turn in task.turns)
    assert calls == {"base": 1142, "miss_func": 1140, "miss_param": 1140, "long_context": 1203}
    turns = Counter(task.category for task in TASKS.values() for _ in task.turns)
    assert turns == {"base": 734, "long_context": 734, "miss_func": 934, "miss_param": 934}
    assert all(turn.message for task in TASKS.values() for turn in task.turns)


def test_a_second_environment_gives_equal_tasks():
    assert BfclEnv().tasks() == ENV.tasks()


def test_no_scenario_crosses_a_split():
    assert Counter(task.split for task in TASKS.values()) == {"train": 320, "dev": 80, "test": 400}
    splits = {}
    for task in TASKS.values():
        splits.setdefault(task.scenario_id, set()).add(task.split)
    assert len(splits) == 200 and all(len(found) == 1 for found in splits.values())


def test_gold_calls_name_listed_tools_and_their_parameters():
    for task in TASKS.values():
        docs = {doc.name: {param.name for param in doc.params} for doc in ENV.docs(task, len(task.turns))}
        assert docs.keys() == set(task.toolset)
        for call in (call for turn in task.turns for call in turn.gold):
            assert set(call.arguments) <= docs[call.name], call


def test_docs_say_what_the_signatures_say():
    docs = {doc.name: doc for task in TASKS.values() for doc in ENV.docs(task, 99)}
    assert len(docs) == 128 and sum(len(doc.params) for doc in docs.values()) == 185
    types = Counter(param.type for doc in docs.values() for param in doc.params)
    assert types == {"string": 113, "number": 36, "integer": 19, "array": 12, "boolean": 4, "object": 1}
    call = parse("[purchase_insurance('t', 'plan', 'b', 9.5, 'c')]", "pythonic", tuple(docs.values())).calls[0]
    assert list(call.arguments.items())[3] == ("insurance_cost", 9.5)


def test_withheld_tools_appear_at_their_turn():
    held = [task for task in TASKS.values() if task.holdout]
    assert len(held) == 200 and {task.category for task in held} == {"miss_func"}
    for task in held:
        for tool, turn in task.holdout.items():
            assert tool not in {doc.name for doc in ENV.docs(task, turn - 1)}
            assert tool in {doc.name for doc in ENV.docs(task, turn)}
            assert [doc.name for doc in ENV.revealed(task, turn)].count(tool) == 1
            assert not ENV.revealed(task, turn - 1) and not task.turns[turn - 1].gold
        assert not ENV.revealed(task, 0)


def test_facts_are_documented_but_for_what_tools_return():
    facts = ENV.facts(["lockDoors", "get_flight_cost", "ls"])
    assert {fact.tool for fact in facts} == {"lockDoors", "get_flight_cost", "ls"}
    assert all(fact.documented == (fact.kind != "returns") for fact in facts)
    enums = {(fact.tool, fact.param): fact.value for fact in facts if fact.kind == "enum"}
    assert enums["lockDoors", "door"] == ["driver", "passenger", "rear_left", "rear_right"]
    assert enums["get_flight_cost", "travel_class"] == ["economy", "business", "first"]
    required = {fact.param: fact.value for fact in facts if fact.kind == "required" and fact.tool == "ls"}
    assert required == {"a": False}
    every = ENV.facts(sorted({tool for task in TASKS.values() for tool in task.toolset}))
    assert sum(fact.kind == "enum" for fact in every) == 12


def test_known_bad_tasks_are_told_with_a_reason():
    bad = {task.task_id: task.known_bad for task in TASKS.values() if task.known_bad}
    assert CASES["verify_unsolvable_holdout"]["input"]["task"] in bad
    assert CASES["verify_ambiguous_period"]["input"]["task"] in bad
    assert CASES["verify_reported_wrong_but_right"]["input"]["task"] not in bad
    assert len(bad) == 22


@pytest.mark.parametrize("name", ["exec_bool_string_truthy", "exec_unknown_kwarg", "exec_rce_tool_name"])
def test_handed_executor_cases(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given, expected = CASES[name]["input"], CASES[name]["expected"]
    session = BfclSession(given["classes"], given.get("initial_config", {}))
    found = [session.call(Call(call["name"], call["args"])) for call in given["calls"]]
    if "results" in expected:
        assert [result.raw for result in found] == expected["results"]
    else:
        assert all(result.error_kind == "unknown_tool" for result in found) and not list(tmp_path.iterdir())


def test_a_call_with_arithmetic_is_never_a_call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = CASES["exec_rce_binop_decode"]["input"]
    parsed = parse(given["text"], given["format"])
    assert not parsed.calls and parsed.errors and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        *((call["name"], call["args"]) for call in CASES["exec_power_dos"]["input"]["calls"]),
        ("power", {"base": -10, "exponent": 20_000_000}),
        ("power", {"base": 10**4000, "exponent": 10**9}),
        ("round_number", {"number": 5, "decimal_places": -(10**9)}),
        ("logarithm", {"value": 7, "base": 3, "precision": 10**9}),
        ("logarithm", {"value": "1e9999999999", "base": 3, "precision": 5}),
        ("square_root", {"number": 7, "precision": 10**8}),
    ],
)
def test_arithmetic_that_would_not_end_is_an_error(tool, arguments):
    started = time.monotonic()
    result = BfclSession(["MathAPI"], {}).call(Call(tool, arguments))
    assert time.monotonic() - started < CASES["exec_power_dos"]["expected"]["within_seconds"]
    assert result.raw.startswith("Error during execution: ") and result.error_kind
    assert refusal(tool, arguments)  # judged before: other threads have no time limit


def test_the_bound_says_what_python_says():
    told = results(BfclSession(["MathAPI"], {}), *(("power", {"base": 10, "exponent": n}) for n in (4299, 4300, 10**9)))
    assert told[0] == f'{{"result": 1{"0" * 4299}}}'
    assert told[1] == told[2]


def test_a_loop_in_python_is_stopped_and_other_threads_still_run():
    with pytest.raises(TimedOut), time_limit(0.05):
        while True:
            pass
    told = []
    worker = threading.Thread(
        target=lambda: told.extend(results(BfclSession(["MathAPI"], {}), ("add", {"a": 1, "b": 2})))
    )
    worker.start()
    worker.join()
    assert told == ['{"result": 3}']


def test_a_directory_in_itself_is_an_error_and_a_finite_state():
    session = BfclSession(["GorillaFileSystem"], {"GorillaFileSystem": FILES})
    assert session.call(Call("cp", {"source": "b", "destination": "b"})).error_kind == ""
    assert session.call(Call("find", {"path": ".", "name": "x"})).error_kind == "other"
    assert "cycle" in str(session.state())


def test_wording_of_results():
    session = BfclSession(["GorillaFileSystem", "MathAPI", "MessageAPI"], {"GorillaFileSystem": FILES})
    assert results(
        session,
        ("cd", {"folder": "a"}),
        ("cd", {"folder": ".."}),
        ("square_root", {"number": 2, "precision": 3}),
        ("add", {"a": 1}),
        ("print", {"x": 1}),
        ("exit", {}),
        ("_load_scenario", {"scenario": {}}),
        ("delete_message", {"receiver_id": "USR002"}),
    ) == [
        '{"current_working_directory": "a"}',
        "{}",
        "{'result': Decimal('1.41')}",
        "Error during execution: MathAPI.add() missing 1 required positional argument: 'b'",
        "Error during execution: name 'print' is not defined",
        "Error during execution: Function call exit is not allowed.",
        "Error during execution: name '_load_scenario' is not defined",
        '{"error": "No user is currently logged in."}',
    ]


def test_default_lists_of_one_tweet_are_not_those_of_the_next():
    config = {"TwitterAPI": {"authenticated": True}}
    one, other = BfclSession(["TwitterAPI"], config), BfclSession(["TwitterAPI"], config)
    results(one, ("post_tweet", {"content": "x"}), ("mention", {"tweet_id": 0, "mentioned_usernames": ["@bob"]}))
    told = other.call(Call("post_tweet", {"content": "y"})).raw
    assert '"mentions": []' in told
    assert config == {"TwitterAPI": {"authenticated": True}}


def test_long_context_records_are_not_shared():
    def paid(session):
        cards = session.state()["TravelAPI"]["credit_card_list"]
        card = min(cards)
        session._parts["TravelAPI"]._set_card_balance(card, 1.0)
        return cards[card]["balance"]

    config = {"TravelAPI": {}}
    first = paid(BfclSession(["TravelAPI"], config, long_context=True))
    assert paid(BfclSession(["TravelAPI"], config, long_context=True)) == first != 1.0


def test_long_weather_is_not_shared():
    config, call = {"VehicleControlAPI": {}}, Call("get_outside_temperature_from_google", {})
    one, other = (BfclSession(["VehicleControlAPI"], config, long_context=True) for _ in range(2))
    first = one.call(call).raw
    assert one.call(call).raw != first == other.call(call).raw


def test_arguments_stay_the_callers():
    tags = ["#a"]
    session = BfclSession(["TwitterAPI"], {"TwitterAPI": {"authenticated": True}})
    session.call(Call("post_tweet", {"content": "x", "tags": tags}))
    tags.append("#b")
    assert session.state()["TwitterAPI"]["tweets"][0]["tags"] == ["#a"]


def test_precision_of_the_process_stays():
    before = mpmath.mp.prec, decimal.getcontext().prec
    results(
        BfclSession(["MathAPI"], {}),
        ("logarithm", {"value": 2, "base": 10, "precision": 90}),
        ("square_root", {"number": 2, "precision": 90}),
    )
    assert (mpmath.mp.prec, decimal.getcontext().prec) == before


def test_the_task_is_not_changed_by_playing_it():
    task = TASKS["multi_turn_long_context_150"]
    before = str(task.initial_state)
    for _ in range(2):
        session = ENV.open(task)
        for calls in gold(task):
            for call in calls:
                session.call(call)
    assert str(task.initial_state) == before


def test_unknown_class_is_told():
    with pytest.raises(ParamError):
        BfclSession(["NoSuchAPI"], {})


def test_light_import():
    """No vendor SDK, no eval runner, no files written beside the package."""
    code = (
        "import sys; from seal.env import load_env; env = load_env('bfcl'); t = env.tasks()[0];"
        "env.open(t).call(t.turns[0].gold[0]); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "numpy", "bfcl_eval.utils", "bfcl_eval.constants.eval_config", "openai"} & set(loaded)
