"""No world changes another, the process, or what the official checker starts from; nothing but literal calls runs."""

import decimal
import importlib
import marshal
import sys
from concurrent.futures import ThreadPoolExecutor

import mpmath
import pytest
from bfcl_cases import gold, in_steps
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.core.types import Call
from seal.env import load_env
from seal.env.bfcl import checker, instances
from seal.env.bfcl.checker import NO_SUCH_TOOL, official_verdict
from seal.env.bfcl.package import EXTENSIONS, MODULES, WORLDS, module
from seal.env.bfcl.session import BfclSession
from seal.env.bfcl.values import public_state

ENV = load_env("bfcl")
TASKS = {task.task_id: task for task in ENV.tasks()}
BY_CLASSES = {}
for _task in ENV.tasks():
    key = (tuple(_task.initial_state["classes"]), _task.initial_state["long_context"])
    BY_CLASSES.setdefault(key, []).append(_task)
WRITES = {  # what leaks in the official process: see docs/isolation.md
    "TwitterAPI": [
        Call("post_tweet", {"content": "hello"}),
        *(Call("mention", {"tweet_id": i, "mentioned_usernames": ["@bob"]}) for i in range(12)),
    ],
    "VehicleControlAPI": [Call("get_outside_temperature_from_google", {})],
    "TravelAPI": [Call("get_credit_card_balance", {"access_token": "abc123xyz", "card_id": "144756014165"})],
    "MathAPI": [
        Call("logarithm", {"value": 5, "base": 2, "precision": 70}),
        Call("square_root", {"number": 5, "precision": 70}),
        Call("logarithm", {"value": "x", "base": 2, "precision": 70}),
    ],
}


def shared_things():
    """Every container at module level and every default, as text."""
    return {name: (_texts(instances._containers(name, True)), _defaults(name)) for name in MODULES}


def _texts(held):
    return {key: repr(value) for key, value in held.items()}


def _defaults(name):
    functions = [f for f in vars(instances._shared(name)).values() if hasattr(f, "__defaults__")]
    return [repr((f.__name__, f.__defaults__, f.__kwdefaults__)) for f in functions]


def program(task, rng):
    """The gold calls with what writes into shared things between them."""
    calls = [call for turn in task.turns for call in turn.gold]
    for name in task.initial_state["classes"]:
        for call in WRITES.get(name, []):
            calls.insert(rng.randint(0, len(calls)), call)
    return calls


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_one_world_does_is_never_seen_in_another(data):
    """Two worlds played in turns give what each gives alone, and module-level things stay as they were."""
    tasks = data.draw(st.sampled_from(sorted(BY_CLASSES.values(), key=lambda some: some[0].task_id)))
    one, other = (data.draw(st.sampled_from(tasks)) for _ in range(2))
    rng = data.draw(st.randoms(use_true_random=False))
    programs = [program(one, rng), program(other, rng)]
    before = shared_things()
    alone = []
    for task, calls in zip((one, other), programs, strict=True):
        session = ENV.open(task)
        alone.append((session.raw_results(calls), session.state()))
    sessions, told = [ENV.open(one), ENV.open(other)], [[], []]
    left = [list(calls) for calls in programs]
    while any(left):
        side = data.draw(st.integers(0, 1)) if all(left) else int(not left[0])
        told[side] += sessions[side].raw_results([left[side].pop(0)])
    assert [(told[side], sessions[side].state()) for side in (0, 1)] == alone
    assert shared_things() == before


def test_worlds_in_many_threads_are_as_alone():
    tasks = [task for task in ENV.tasks() if task.initial_state["long_context"]][::8]

    def play(task):
        session = ENV.open(task)
        return session.raw_results([call for turn in task.turns for call in turn.gold]), session.state()

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(play, tasks * 3)) == [play(task) for task in tasks] * 3


def test_precisions_in_many_threads_are_as_alone():
    calls = [Call("logarithm", {"value": 7, "base": 3, "precision": n}) for n in range(5, 400, 5)]

    def play(call):
        return BfclSession(["MathAPI"], {}).call(call).raw

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(play, calls * 2)) == [play(call) for call in calls] * 2


def test_worlds_start_as_the_official_loader_leaves_them():
    """Public and private attributes, generators included; of what holds more than plain values, the public state."""
    for task in ENV.tasks()[::20]:
        classes, config, long_context = (task.initial_state[key] for key in ("classes", "config", "long_context"))
        with checker._own_modules("seal_start"):
            for name, ours in instances.instances(classes, config, long_context).items():
                theirs = getattr(importlib.import_module(f"{WORLDS}.{MODULES[name]}"), name)()
                if name != "MathAPI":
                    theirs._load_scenario(marshal.loads(marshal.dumps(config.get(name, {}))), long_context=long_context)
                assert public_state(ours) == public_state(theirs) and vars(ours).keys() == vars(theirs).keys()
                if hasattr(theirs, "_random"):
                    assert ours._random.getstate() == theirs._random.getstate()


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("long_context", [False, True])
def test_every_way_to_shared_things_is_known(name, long_context):
    """Module-level functions and other classes of a module reach none, and tools only by themselves."""
    space, containers = vars(module(MODULES[name])), instances._containers(name, True)
    for key, value in space.items():
        if getattr(value, "__module__", "") != f"{WORLDS}.{MODULES[name]}" or key == name:
            continue
        functions = (
            [value] if hasattr(value, "__code__") else [f for f in vars(value).values() if hasattr(f, "__code__")]
        )
        for function in functions:
            assert not set(instances._names(function.__code__)) & containers.keys(), (key, function)
    for tool in instances.reaching(name, long_context):
        assert instances._reach(name, long_context, (tool,))[0] == (tool,)


def test_copies_share_no_container():
    def ids(value):
        inner = value.values() if isinstance(value, dict) else value
        return {id(value)}.union(*(ids(item) for item in inner if isinstance(item, dict | list | set)))

    for name in MODULES:
        for value in instances._containers(name, True).values():
            copy = instances._deep_copy(value)
            assert copy == value and not ids(copy) & ids(value)


def test_our_modules_are_not_the_official_ones():
    with checker._own_modules("seal_apart"):
        theirs = importlib.import_module(f"{WORLDS}.{EXTENSIONS}")
        task = TASKS["multi_turn_long_context_150"]
        before = ENV.open(task).state()
        for key, value in vars(theirs).items():
            if key.isupper() and isinstance(value, dict | list):
                value.clear()
        assert ENV.open(task).state() == before
    for name in (*MODULES.values(), EXTENSIONS):
        assert module(name) is not sys.modules.get(f"{WORLDS}.{name}")


@pytest.mark.parametrize("precision", [70, 0, -3, "x", None, 10**9])
def test_precision_is_the_processes_own_again(precision):
    before = mpmath.mp.prec, decimal.getcontext().prec, decimal.getcontext().flags.copy()
    session = BfclSession(["MathAPI"], {})
    for tool, first in (("logarithm", "value"), ("square_root", "number")):
        session.call(Call(tool, {first: 2, "precision": precision} | ({"base": 3} if tool == "logarithm" else {})))
        assert (mpmath.mp.prec, decimal.getcontext().prec, decimal.getcontext().flags) == before


ATTACKS = (
    "__import__('os').system('touch PWNED')",
    "open('PWNED', 'w').write('x')",
    "__import__('sys').modules['bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker'].__dict__.update("
    "state_checker=lambda *a: {'valid': True}, response_checker=lambda *a: {'valid': True})",
    "execution_results.append('FAKE')",
    "(lambda: __import__('sys').exit())()",
    "globals().clear()",
    "9**9**9",
)
AROUND = ("{0}", "{0} or {1}", "{1}({0}) or {1}", "{1}(a={0})", "[{0}][0]", "{1}.__class__", "{1}.__init__.__globals__")


@pytest.mark.parametrize("attack", ATTACKS)
@settings(max_examples=8, deadline=None)
@given(around=st.sampled_from(AROUND), tool=st.sampled_from(("add", "ls", "cd", "rm")), value=st.sampled_from((1, "a")))
def test_names_are_tools_or_nothing(attack, around, tool, value, tmp_path_factory):
    """A tool's or argument's name is never read as code, by us or by the official checker behind official_verdict."""
    task, name = TASKS["multi_turn_base_1"], around.format(attack, tool)
    folder = tmp_path_factory.mktemp("attack")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for call in (Call(name, {"a": value}), Call(tool, {name: value})):
            session = ENV.open(task)
            before = session.state()
            assert session.call(call).error_kind and session.state() == before
            assert checker.official_input(task, [[[call]], *([] for _ in task.turns[1:])])[0][0] == [[NO_SUCH_TOOL]]
            assert not official_verdict(task, [[[call]], *([] for _ in task.turns[1:])])["valid"]
            assert not official_verdict(task, [[[name]], *([] for _ in task.turns[1:])])["valid"]
        assert official_verdict(task, in_steps(gold(task)))["valid"] and not list(folder.iterdir())


@pytest.mark.parametrize("attack", ATTACKS)
def test_texts_stay_texts(attack):
    """What a text argument holds is stored and told, never run or rewritten."""
    session = ENV.open(TASKS["multi_turn_base_1"])
    told = session.call(Call("echo", {"content": attack}))
    assert told.error_kind == "" and attack in told.raw.replace('\\"', '"')


def test_private_parts_are_no_tools():
    session = ENV.open(TASKS["multi_turn_base_1"])
    for name in ("_load_scenario", "__class__", "__init__", "root", "long_context", "_current_dir", "", "cd.__self__"):
        assert session.call(Call(name, {})).error_kind == "unknown_tool"
