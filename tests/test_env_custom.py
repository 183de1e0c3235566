"""Tools of one's own: schemas from hints, fresh worlds, errors as results, the worked example, the docs."""

import json
import re
import sys

import pytest
from custom_cases import DESK, env_of, session
from hypothesis import given, settings
from hypothesis import strategies as st
from workspaces import ROOT, command, commit, dvc, workspace

from seal.commands.check import played
from seal.commands.run import use_preset
from seal.core.seeds import RoundKey
from seal.core.types import ERROR_KINDS, Call
from seal.diagnose import diagnose
from seal.env import load_env
from seal.env.custom.plain_json import to_json
from seal.policy.scripted import GoldPolicy
from seal.rollout.engine import play
from seal.rollout.plan import requests_for
from seal.settings.play import CollectParams
from seal.store.tables import read_table
from seal.verify.rollout import success, verify_rollout
from seal.verify.turns import verify


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to put modules into, which is where names are looked up."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


# The worked example.


def test_the_example_is_solved_by_its_gold_programs():
    env = load_env(f"custom:{DESK}")
    env.prove()
    tasks = [task for task in env.tasks() if not any(env.checks(task))]
    assert len(env.tools.docs) == 5 and len(tasks) == 13
    requests = requests_for(tasks, CollectParams(group_size=2), RoundKey("r", 1, 0))[::2]
    for task, rollout in zip(tasks, play(env, GoldPolicy("qwen_xml"), requests)):
        verdicts = verify(env, task, rollout.calls_by_turn(len(task.turns)))
        assert success(task, verdicts, rollout), task.task_id
        assert not success(task, verify(env, task, [[] for _ in task.turns]), rollout), task.task_id


def test_the_example_keeps_scenarios_apart_and_withholds_tools():
    env = load_env(f"custom:{DESK}")
    splits = {}
    for task in env.tasks():
        splits.setdefault(task.scenario_id, set()).add(task.split)
    assert all(len(found) == 1 for found in splits.values())
    assert set.union(*splits.values()) == {"train", "dev", "test"}
    late = next(task for task in env.tasks() if task.holdout)
    assert "borrow" not in {doc.name for doc in env.docs(late, 0)}
    assert [doc.name for doc in env.revealed(late, 1)] == ["borrow"]


@pytest.mark.slow
def test_rounds_on_the_example_run_through_the_real_stages(tmp_path):
    root = workspace(tmp_path / "w", "run: {seed: 1}\nenvs: {}\nstarts: {}\nrounds: {}\n", plain=False)
    (root / "examples").symlink_to(ROOT / "examples")
    commit(root)
    assert use_preset(root, str(root / "examples" / "library_desk" / "params.yaml")) == ["desk1", "desk2"]
    dvc(root, "repro", "evaluate@desk1")
    tasks = read_table(root / "data/tasks/custom.parquet", "tasks").to_pylist()
    assert {task["env"] for task in tasks} == {"custom"} and len(tasks) == 15
    verdicts = read_table(root / "data/rounds/desk1/verify/verdicts.parquet", "verdicts").to_pylist()
    by_grader = {json.loads(row["evidence"]).get("graded", "gold"): row["confidence"] for row in verdicts}
    assert by_grader == {"gold": 1.0, "found_a_free_book": 1.0, "schema": 0.3}
    labels = read_table(root / "data/rounds/desk1/diagnose/diagnoses.parquet", "diagnoses").to_pylist()
    sure = {(row["rollout_id"], row["turn"]): row["confidence"] for row in verdicts}
    assert labels and all(row["confidence"] <= sure[row["rollout_id"], row["turn"]] for row in labels)
    broken = command(root, sys.executable, "stages/prepare.py", "shop", check=False)
    assert broken.returncode == 2 and "declared in params.yaml: custom" in broken.stderr


# What a function becomes.


def test_docs_come_from_hints_and_docstrings(folder):
    docs = {doc.name: doc for doc in env_of(folder).tools.docs}
    assert list(docs) == ["put", "shape", "grow", "fail", "told", "forever", "deep", "long"]
    key, n = docs["put"].params
    assert docs["put"].description == "Put something into the box."
    assert (key.type, key.required, key.description) == ("string", True, "Where it goes.")
    assert (n.type, n.required, n.default, n.description) == ("integer", False, 1, "How many.")
    shape = {param.name: param for param in docs["shape"].params}
    assert (shape["size"].type, shape["size"].enum, shape["size"].description) == ("string", ("s", "l"), "How large.")
    assert (shape["at"].type, shape["kind"].type, shape["kind"].enum) == ("object", "integer", (1, 2))
    assert (shape["tags"].type, shape["tags"].required, shape["any"].type) == ("array", False, "")


def test_facts_quote_what_the_docs_tell(folder):
    facts = {(f.param, f.kind): f.value for f in env_of(folder).facts(["shape"])}
    assert facts["size", "enum"] == ["s", "l"] and facts["at", "required"] is True
    assert all(fact.documented for fact in env_of(folder).facts(["put", "shape"]))


def test_arguments_become_what_the_hints_say(folder):
    call = Call("shape", {"size": "s", "at": {"x": 3}, "kind": 2, "tags": ["t"], "any": "x"})
    assert session(env_of(folder)).call(call).raw == "True 3 0 2 ['t'] x"


@pytest.mark.parametrize(
    ("call", "kind", "says"),
    [
        (Call("fly", {}), "unknown_tool", "no tool fly"),
        (Call("_secret", {}), "unknown_tool", "no tool"),
        (Call("put", {}), "missing_argument", "key"),
        (Call("put", {"key": "a", "x": 1}), "unexpected_argument", "x"),
        (Call("put", {"key": 1}), "wrong_type", "key"),
        (Call("put", {"key": "a", "n": "1"}), "wrong_type", "n"),
        (Call("put", {"key": "a", "n": True}), "wrong_type", "n"),
        (Call("put", {"key": "a", "n": 6}), "invalid_value", "too many"),
        (Call("shape", {"size": "m", "at": {"x": 1}}), "invalid_value", "size"),
        (Call("grow", {"by": 0}), "invalid_value", "by"),
        (Call("fail", {"how": "key"}), "not_found", "error: k"),
        (Call("fail", {"how": "permission"}), "permission", "no"),
        (Call("fail", {"how": "own"}), "precondition", "shut"),
        (Call("fail", {"how": "text"}), "not_found", "door"),
        (Call("fail", {"how": "other"}), "other", "hm"),
        (Call("fail", {"how": "type"}), "other", "t"),
        (Call("fail", {"how": "exit"}), "other", "1"),
        (Call("told", {"ok": False}), "permission", "denied"),
        (Call("told", {"ok": True}), "", "value"),
        (Call("forever", {}), "timeout", "0.2 seconds"),
        (Call("deep", {"n": 0}), "other", "recursion"),
        (Call("long", {}), "other", "200000 characters"),
    ],
)
def test_whatever_goes_wrong_is_a_result_with_a_kind(folder, capsys, call, kind, says):
    result = session(env_of(folder, seconds=0.2)).call(call)
    assert (result.error_kind, says in result.raw, result.shown) == (kind, True, result.raw)
    assert not capsys.readouterr().out


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder := tmp_path_factory.mktemp("fuzzed")))
        yield env_of(folder)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["put", "shape", "told", "grow", "x"]),
    st.dictionaries(
        st.sampled_from(["key", "n", "size", "at", "by", "ok"]),
        st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda s: st.lists(s) | st.dictionaries(
            st.text(), s), max_leaves=4), max_size=3),
)  # fmt: skip
def test_no_call_raises(fuzzed, name, arguments):
    result = session(fuzzed).call(Call(name, arguments))
    assert result.error_kind in ("", *ERROR_KINDS)


# State.


def test_every_world_is_fresh_and_its_state_is_its_public_data(folder):
    env = env_of(folder)
    one, two = session(env, {"box": {"a": 1}}), session(env)
    one.call(Call("put", {"key": "a"}))
    assert (one.state(), two.state(), session(env).state()) == ({"box": {"a": 2}}, {"box": {}}, {"box": {}})


CLASS = '''
class Desk:
    shared: list[int] = []

    def __init__(self, names: list[str], lock: int = 0):
        import threading
        self.names, self._hidden, self.seen, self.lock = names, 1, {2, 1}, threading.Lock()

    def note(self, name: str, seen: list[int] = []) -> str:
        """Note a name."""
        seen.append(1)
        self.shared.append(1)
        self.names.append(name)
        return f"{len(seen)} {len(self.shared)}"

    @staticmethod
    def twice(x: int) -> int:
        """Double."""
        return 2 * x

    def _private(self) -> None: ...


def desk(names: list[str]) -> Desk:
    return Desk([name.upper() for name in names])
'''


@pytest.mark.parametrize(("maker", "names"), [("Desk", ["a", "b"]), ("desk", ["A", "b"])])
def test_a_class_or_a_factory_makes_the_world(folder, maker, names):
    env = env_of(folder, CLASS, None, f"own_{maker}:{maker}")
    assert [doc.name for doc in env.tools.docs] == ["note", "twice"]
    for _ in range(2):  # neither a default nor a class attribute is shared between worlds
        world = session(env, {"names": ["a"]})
        assert world.call(Call("note", {"name": "b"})).raw == "1 1"
        assert world.call(Call("twice", {"x": 4})).raw == "8"
        assert world.state() == {"names": names, "seen": [1, 2], "lock": "<lock>"}


def test_a_state_function_tells_the_state_itself(folder):
    tools = "box = [1]\ndef state() -> dict:\n    return {'n': len(box)}\ndef add(n: int) -> int:\n    box.append(n)\n"
    world = session(env_of(folder, tools, None))
    world.call(Call("add", {"n": 1}))
    assert world.state() == {"n": 2}


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates() | st.decimals(),
    lambda s: st.lists(s) | st.tuples(s, s) | st.dictionaries(st.integers() | st.text(), s)
    | st.frozensets(st.integers() | st.text()), max_leaves=12))  # fmt: skip
def test_plain_is_json_and_idempotent(value):
    found = to_json(value)
    assert to_json(found) == found == json.loads(json.dumps(found, allow_nan=False))


def test_what_the_docs_show_is_what_happens(tmp_path):
    blocks = re.findall(r"```(\w*)\n(.*?)```", (ROOT / "docs" / "custom.md").read_text(), re.DOTALL)
    first = dict(reversed(blocks))
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf" / "tools.py").write_text(first["python"])
    (tmp_path / "shelf" / "tasks.yaml").write_text(first["yaml"])
    shown = [block for _, block in blocks if block.startswith("$ ")]
    assert len(shown) == 2
    for block in shown:
        *script, answer = block.replace("$ seal ", f"{sys.executable} -m seal.cli ").replace("$ ", "").splitlines()
        said = command(tmp_path, "bash", "-c", "\n".join(script)).stdout
        assert said.startswith(answer.partition(", ...")[0])


def test_the_label_of_a_float_for_an_integer_is_what_the_function_says(folder):
    """Hints are strict: `n: int` takes no 2.0, whatever JSON Schema says of it."""
    env = env_of(folder)
    task = next(task for task in env.tasks() if task.task_id == "one")
    rollout = played(env, task, [[["put(key='a', n=2.0)"]]])
    assert [result.error_kind for step in rollout.steps for result in step.results] == ["wrong_type"]
    first = diagnose(env, task, rollout, verify_rollout(env, task, rollout))[0]
    assert (first.label, first.detail, first.parameter) == ("argument_mismatch", "type", "n")


def test_the_command_line_tries_one_call_and_checks_one_task(tmp_path):
    (tmp_path / "state.json").write_text('{"books": {"B1": "Dune"}}')
    calls = '[{"name": "borrow", "arguments": {"book": "B1", "member": "Ann"}}, {"name": "borrow", "arguments": {}}]'
    verb = (sys.executable, "-m", "seal.cli")
    done = command(
        ROOT, *verb, "call", "--env", f"custom:{DESK}", "--config", str(tmp_path / "state.json"), input=calls
    )
    assert json.loads(done.stdout) == ["B1 lent to Ann", "error: missing argument book"]
    turns = json.dumps([[['give_back(book="B1")']]])
    done = command(ROOT, *verb, "check", "--env", f"custom:{DESK}", "--task", "return_dune", input=turns)
    assert json.loads(done.stdout)["turns"][0]["primary"] == "pass"
    done = command(ROOT, *verb, "check", "--env", "custom:no.such", "--task", "x", input=turns, check=False)
    assert done.returncode == 2 and done.stderr.startswith("error: module: no.such")
