"""Tasks of one's own from files, and every mistake in tasks or modules as one clear error."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from custom_cases import TASKS, TOOLS, env_of
from hypothesis import given
from hypothesis import strategies as st

from seal.commands.custom_env import changed_tools
from seal.core.errors import ParamError
from seal.core.types import Call
from seal.env import load_env
from seal.env.custom.tasks import TaskEntry, TurnEntry, splits_of
from seal.settings.params import load_params
from seal.store.tables import rows_of_tasks, write_table
from seal.workspace.lineage import Lineage, tasks_path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to put modules into, which is where names are looked up."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_parquet_and_yaml_give_the_same_tasks(folder):
    env = env_of(folder)
    rows = [
        {"id": "one", "state": None, "turns": [{"user": "add it", "gold": ['put("a", 2)'], "check": None}]},
        {"id": "two", "state": "{}", "turns": [{"user": "add it", "gold": ['put(key="b")'], "check": ""}]},
        {
            "id": "three",
            "state": None,
            "turns": [
                {"user": "hello", "gold": [], "check": None},
                {"user": "add it", "gold": ['put(key="c")'], "check": None},
            ],
        },
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "tasks.parquet")
    other = load_env("custom", module=env._params.module, tasks="tasks.parquet")
    assert other.tasks() == env.tasks()
    assert env.tasks()[0].turns[0].gold == (Call("put", {"key": "a", "n": 2}),)
    env.prove()


@pytest.mark.parametrize("turns", ["hi", ["hi"], 3, [3], {"user": "hi"}])
def test_turns_of_another_shape_are_one_clear_error(folder, turns):
    env = env_of(folder)
    pq.write_table(pa.Table.from_pylist([{"id": "one", "turns": turns}]), folder / "tasks.parquet")
    with pytest.raises(ParamError, match="turns"):
        load_env("custom", module=env._params.module, tasks="tasks.parquet").tasks()


@given(st.lists(st.tuples(st.integers(0, 30), st.sampled_from(["", "", "train", "test"])), min_size=1, max_size=40))
def test_splits_are_by_scenario_and_do_not_depend_on_the_order(entries):
    scenarios = dict(entries)  # one split a scenario
    tasks = [
        TaskEntry(id=f"{i}", turns=(TurnEntry(user="hi"),), scenario=f"s{scenario}", split=scenarios[scenario])
        for i, (scenario, _) in enumerate(entries)
    ]
    try:
        found = splits_of(tasks)
    except ParamError as error:
        assert error.thing == "splits"
        return
    assert found == splits_of(tasks[::-1])
    assert set(found) == {f"s{scenario}" for scenario in scenarios}
    assert all(found[f"s{scenario}"] == split for scenario, split in scenarios.items() if split)
    assert {"train", "test"} <= set(found.values())


def with_task(**change) -> str:
    return json.dumps([*json.loads(json.dumps(BASE)), {"id": "four", "turns": [{"user": "hi"}]} | change])


BYE = {"user": "bye"}
BASE = [{"id": name, "turns": [{"user": "hi"}]} for name in ("one", "two", "three")]


@pytest.mark.parametrize(
    ("tasks", "thing", "value"),
    [
        ("- id: [", "tasks", "line 1"),
        ("a: 1", "tasks", "dict"),
        ("", "tasks", "NoneType"),
        ("[]", "tasks", "empty"),
        (with_task(id="one"), "task id", "one"),
        (with_task(id=4), "tasks.yaml[3].id", "4"),
        (with_task(trun=1), "tasks.yaml[3].trun", "1"),
        (with_task(split="trian"), "tasks.yaml[3].split", "trian"),
        (with_task(turns=[]), "task four, turns", "none"),
        (with_task(turns=[{"gold": []}]), "tasks.yaml[3].turns[0].user", "missing"),
        (with_task(toolset=["fly"]), "task four, toolset", "fly"),
        (with_task(holdout={"fly": 1}), "task four, toolset", "fly"),
        (with_task(holdout={"put": 1}), "task four, holdout", "put at turn 1"),
        (with_task(holdout={"put": 1}, turns=[{"user": "", "gold": ['put("a")']}, BYE]), "task four, gold", "put"),
        (with_task(turns=[{"user": "", "gold": ["fly()"]}]), "task four, turn 0, gold call 0", "fly"),
        (with_task(toolset=["told"], turns=[{"user": "", "gold": ['put("a")']}]), "task four, turn 0", "put"),
        (with_task(turns=[{"user": "", "gold": ["put(x=1)"]}]), "task four, turn 0, gold call 0", "x="),
        (with_task(turns=[{"user": "", "gold": ["put(key=y)"]}]), "task four, turn 0, gold call 0", "no literal"),
        (with_task(turns=[{"user": "", "gold": [3]}]), "task four, turn 0, gold call 0", "3"),
        (with_task(turns=[{"user": "", "gold": [{"name": "put", "arguments": "{bad"}]}]), "task four, turn 0", "{bad"),
        (with_task(turns=[{"user": "", "gold": [{"name": "put", "arguments": [1]}]}]), "task four, turn 0", "[1]"),
        ("- {id: a, turns: [{user: u, gold: [{name: put, arguments: {key: 2020-01-01}}]}], split: train}\n"
         "- {id: b, turns: [{user: u}], split: test}", "task a, turn 0, gold call 0", "2020"),
        (with_task(turns=[{"user": "", "check": "nobody"}]), "checker", "nobody"),
        (with_task(turns=[{"user": "", "check": "judge"}]), "envs.custom.judge", "four"),
        (with_task(turns=[{"user": "", "check": "schema"}, {"user": "x"}]), "task four", "turn 1"),
        (with_task(state={"bix": 1}), "task four, state", "bix"),
        (with_task(turns=[{"user": "", "gold": ['put("a", 9)']}]), "task four, turn 0, gold call 0", "too many"),
        (json.dumps([{**task, "split": "train"} for task in BASE]), "splits", "test"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_tasks_is_one_clear_error(folder, tasks, thing, value):
    with pytest.raises(ParamError) as told:
        env_of(folder, tasks=tasks).prove()
    assert told.value.thing.startswith(thing) and value in str(told.value.value) and told.value.remedy


def test_tools_without_public_state_are_told(folder, capsys):
    env_of(folder).prove()
    assert capsys.readouterr().err == ""
    hidden = "BOX = {}\n\ndef put(key: str, n: int = 1) -> str:\n    BOX[key] = n\n    return 'ok'\n"
    env_of(folder, hidden).prove()
    assert capsys.readouterr().err.startswith("note: envs.custom: these tools have no public state")
    world = "\n\ndef state() -> dict:\n    return dict(BOX)\n"  # empty at the beginning
    env_of(folder, hidden + world).prove()
    assert capsys.readouterr().err == ""
    checked = [{**task, "turns": [{"user": "hi", "check": "schema"}]} for task in BASE]
    env_of(folder, hidden, tasks=json.dumps(checked)).prove()
    assert capsys.readouterr().err == ""


def test_a_scenario_in_two_splits_is_refused(folder):
    tasks = [{**task, "scenario": "s", "split": split} for task, split in zip(BASE, ("train", "test", "test"))]
    with pytest.raises(ParamError, match="scenario s is in train and in test"):
        env_of(folder, tasks=json.dumps(tasks)).tasks()


def test_tools_that_differ_from_run_to_run_are_refused(folder):
    tools = "import random\n\ndef put(key: str, n: int = 1) -> float:\n    return random.random()\n"
    with pytest.raises(ParamError, match="deterministic"):
        env_of(folder, tools).prove()


@pytest.mark.parametrize(
    ("module", "tools", "value"),
    [
        ("no_such_pkg.tools", "", "no_such_pkg"),
        ("no_such_tools", "", "no such module"),
        ("", "", "neither"),
        ("broken_a", "def f(:", "line 1"),
        ("broken_b", "1 / 0", "ZeroDivisionError"),
        ("broken_c", "def f(x): ...", "no type hint"),
        ("broken_d", "def f(x: Nothing): ...", "Nothing"),
        ("broken_e", "def f(*x: int): ...", "x: int"),
        ("broken_f", "async def f(x: int): ...", "async"),
        ("broken_m", "async def f(x: int):\n  yield x", "async"),
        ("broken_n", "def f(x: int):\n  yield x", "generator"),
        ("broken_g", "class A:\n  def f(self): ...", "no public function"),
        ("broken_h", "import threading\ndef f(x: threading.Thread): ...", "Thread"),
        ("broken_i:Nope", "x = 1", "is not there"),
        ("broken_j:make", "def make(): ...", "return hint"),
        ("broken_k", "import sys\nsys.exit(0)", "SystemExit: 0"),
        ("broken_l", "while True: pass", "more than 0.2 seconds"),
    ],
)
def test_a_mistake_in_the_module_is_one_clear_error(folder, monkeypatch, module, tools, value):
    monkeypatch.setattr("seal.env.custom.source.SECONDS", 0.2)
    name = module.partition(":")[0]
    if tools:
        (folder / f"{name}.py").write_text(tools)
    (folder / "tasks.yaml").write_text(TASKS)
    with pytest.raises(ParamError) as told:
        load_env("custom", module=module).tasks()
    assert value in str(told.value.value) and told.value.remedy


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ("import sys\nclass W:\n  def __init__(self): sys.exit(3)\n  def f(self) -> int: ...", "SystemExit: 3"),
        ("class W:\n  def __init__(self):\n    while True: pass\n  def f(self) -> int: ...", "TimedOut"),
        ("import sys\nclass W:\n  def state(self): sys.exit(3)\n  def f(self) -> int: ...", "SystemExit: 3"),
        ("class W:\n  def state(self): return 7\n  def f(self) -> int: ...", "TypeError"),
    ],
)
def test_a_world_that_cannot_start_or_tell_its_state_is_one_clear_error(folder, monkeypatch, tools, said):
    monkeypatch.setattr("seal.env.custom.functions.SECONDS", 0.2)
    with pytest.raises(ParamError) as told:
        env_of(folder, tools, name=f"{folder.name}:W").tools.open({}).state()
    assert told.value.thing == "state" and said in told.value.value


def test_what_a_module_prints_stays_out_of_the_answers(folder, capsys):
    env_of(folder, f"print('hello')\n{TOOLS}").tools.open({})
    assert capsys.readouterr().out == ""


def test_too_few_scenarios_to_split_are_one_clear_error(folder):
    with pytest.raises(ParamError, match="no scenario for test among 1") as told:
        env_of(folder, tasks=json.dumps(BASE[:1])).tasks()
    assert told.value.remedy == "write three scenarios or more, or give each task its split"


def test_a_changed_module_or_task_file_makes_the_stored_tasks_old(folder):
    """Comments change nothing; a module that no longer loads has changed."""
    env = env_of(folder, name="watched")
    (folder / "params.yaml").write_text("envs: {custom: {module: watched}}\nstarts: {}\nrounds: {}\n")
    (folder / "dvc.yaml").write_text("")
    lineage = Lineage(load_params(folder / "params.yaml"))
    assert changed_tools(folder, lineage) == {}  # nothing is stored
    write_table(tasks_path(folder, "custom"), "tasks", rows_of_tasks(env.tasks()))
    assert changed_tools(folder, lineage) == {}
    changed = {"custom": "its tools or tasks"}
    for file, text, expected in [
        ("tasks.yaml", TASKS + "\n# more\n", {}),
        ("tasks.yaml", TASKS.replace("add it", "add that"), changed),
        ("watched.py", TOOLS + "\nX = 1\n", changed),
        ("watched.py", "def f(:", changed),
    ]:
        before = (folder / file).read_text()
        (folder / file).write_text(text)
        assert changed_tools(folder, lineage) == expected, text
        (folder / file).write_text(before)


def test_a_class_is_offered_where_the_module_has_one(folder):
    with pytest.raises(ParamError) as told:
        _ = env_of(folder, "class Desk:\n    def f(self) -> int: ...", name="only_a_class").tools
    assert told.value.remedy == "name a class: only_a_class:Desk"
