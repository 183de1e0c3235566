"""Our verdicts against BFCL's own checker."""

import decimal
import importlib
import sys
from dataclasses import replace

import mpmath
import pytest
from bfcl_cases import CASES, JUNK, gold, in_steps, mutants

from seal.core.types import Call, UserTurn
from seal.env import load_env
from seal.env.bfcl import checker
from seal.env.bfcl.checker import official_verdict
from seal.env.bfcl.instances import signatures
from seal.env.bfcl.package import WORLDS
from seal.verify.turns import verify

ENV = load_env("bfcl")
TASKS = {task.task_id: task for task in ENV.tasks()}
PASSED = {"valid": True, "error_type": None, "turn": None}


def agrees(task, turns):
    """Same verdict, and the same first failing turn."""
    official = official_verdict(task, in_steps(turns))
    failing = [verdict.turn for verdict in verify(ENV, task, turns) if not verdict.valid]
    return official["valid"] == (not failing) and official["turn"] == (failing[0] if failing else None)


def worded_alike(task, turns):
    """The official executor's result strings, call by call, are those of our session."""
    classes, config = task.initial_state["classes"], task.initial_state["config"]
    order = {tool: {} for name in classes for tool in signatures(name)}
    calls, session = [call for turn in turns for call in turn], ENV.open(task)
    with checker._own_modules("seal_wording"), decimal.localcontext(), mpmath.workprec(mpmath.mp.prec):
        run = importlib.import_module(checker.EXECUTOR).execute_multi_turn_func_call
        texts = [checker._text(call, order) for call in calls]
        official, _ = run(texts, config, classes, "seal_wording", task.task_id, task.category == "long_context")
    ours = [session.call(call).raw for call in calls]
    return all(mine == his for text, mine, his in zip(texts, ours, official) if text != checker.NO_SUCH_TOOL)


def test_results_are_worded_to_the_byte():
    tasks = ENV.tasks()
    assert all(worded_alike(task, gold(task)) for task in tasks[::16])
    assert [task.task_id for task, turns in mutants(tasks, 60, seed=3) if not worded_alike(task, turns)] == []


@pytest.mark.slow
def test_results_of_all_gold_and_many_mutants_are_worded_to_the_byte():
    tasks = ENV.tasks()
    assert sum(worded_alike(task, gold(task)) for task in tasks) == 800
    assert [task.task_id for task, turns in mutants(tasks, 300, seed=4) if not worded_alike(task, turns)] == []


def test_gold_passes_officially_on_a_sample():
    for task in ENV.tasks()[::16]:
        assert official_verdict(task, in_steps(gold(task))) == PASSED, task.task_id


@pytest.mark.slow
def test_gold_passes_officially_on_all():
    assert sum(official_verdict(task, in_steps(gold(task))) == PASSED for task in ENV.tasks()) == 800


def test_verdicts_agree_on_mutants():
    tasks = ENV.tasks()
    assert [task.task_id for task, turns in mutants(tasks, 150, seed=1) if not agrees(task, turns)] == []


@pytest.mark.slow
def test_verdicts_agree_on_many_mutants():
    tasks = ENV.tasks()
    assert [task.task_id for task, turns in mutants(tasks, 700, seed=2) if not agrees(task, turns)] == []


@pytest.mark.parametrize("junk", JUNK, ids=lambda call: call.name)
def test_verdicts_agree_with_junk_in_front(junk):
    for task in [TASKS["multi_turn_base_0"], TASKS["multi_turn_long_context_50"]]:
        turns = gold(task)
        turns[0].insert(0, junk)
        assert agrees(task, turns)


@pytest.mark.parametrize(
    "name", [c["id"] for c in CASES.values() if c["kind"] == "verifier" and isinstance(c["input"].get("turns"), list)]
)
def test_handed_cases(name):
    given, expected = CASES[name]["input"], CASES[name]["expected"]
    found = official_verdict(TASKS[given["task"]], given["turns"])
    assert found["valid"] == expected["official_valid"]
    assert found["error_type"] == expected.get("official_error_type")
    assert found["turn"] == expected.get("failing_turn")


def test_ambiguous_full_stop_is_officially_wrong():
    case = CASES["verify_ambiguous_period"]
    task, turns = TASKS[case["input"]["task"]], in_steps(gold(TASKS[case["input"]["task"]]))
    turns[case["input"]["turn"]] = [case["input"]["calls"]]
    found = official_verdict(task, turns)
    assert found == {
        "valid": False,
        "error_type": case["expected"]["official_error_type"],
        "turn": case["expected"]["failing_turn"],
    }


def test_one_call_a_step_is_as_good():
    task = TASKS["multi_turn_base_0"]
    assert official_verdict(task, [[[call] for call in calls] for calls in gold(task)]) == PASSED


def test_another_number_of_turns_is_force_terminated():
    task = TASKS["multi_turn_base_0"]
    turns = in_steps(gold(task))
    assert official_verdict(task, turns[:2]) == {"valid": False, "error_type": checker.FORCE_TERMINATED, "turn": 2}
    assert not official_verdict(task, [*turns, []])["valid"]


def test_a_failed_run_leaves_nothing_for_the_next():
    """Handed case env_repeat_same_name: officially the second episode fails."""
    task = TASKS[CASES["env_repeat_same_name"]["input"]["task"]]
    for _ in range(2):
        assert not official_verdict(task, [[["rm(file_name='final_report.pdf')"]], [], [], []])["valid"]
        assert official_verdict(task, in_steps(gold(task))) == PASSED
    assert not [key for key in vars(sys.modules[checker.EXECUTOR]) if key.endswith("_instance")]
    assert not [name for name in sys.modules if name.startswith(f"{WORLDS}.")]


def test_values_are_compared_and_not_their_spelling():
    """The official executor takes a word before a parenthesis for a call, also inside a text."""
    task = TASKS["multi_turn_base_0"]
    told = Call("echo", {"content": "then sort (all) (x)"})
    task = replace(task, turns=(UserTurn("write it down", (told,)),))
    assert official_verdict(task, [[[told]]]) == PASSED and agrees(task, [[told]])
    other = Call("echo", {"content": "then sort(all)(x)"})
    assert not official_verdict(task, [[[other]]])["valid"] and agrees(task, [[other]])


def test_process_wide_precision_and_defaults_are_restored():
    before = mpmath.mp.prec, decimal.getcontext().prec
    calls = [
        Call("post_tweet", {"content": "x"}),
        Call("mention", {"tweet_id": 0, "mentioned_usernames": ["@bob"]}),
        Call("logarithm", {"value": 2, "base": 10, "precision": 90}),
    ]
    classes = [({"TwitterAPI", "MathAPI"} & set(task.initial_state["classes"]), task) for task in TASKS.values()]
    for task in [task for found, task in classes if found][::20]:
        official_verdict(task, [[calls], *([] for _ in task.turns[1:])])
        assert official_verdict(task, in_steps(gold(task))) == PASSED
    assert (mpmath.mp.prec, decimal.getcontext().prec) == before


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('touch PWNED')",
        "ls(a=__import__('os').system('touch PWNED'))",
        "open('PWNED', 'w').write('x')",
        "open(file='PWNED', mode='w')",
        'exec(\'open("PWNED", "w")\')',
        "(lambda: __import__('sys').exit())()",
        "exit()",
        "power(base=9, exponent=387420489)",
        "9**9**9",
        "echo(content='open(\\'PWNED\\', \\'w\\')', file_name='ls(')",
        "execution_results.append('FAKE')",
    ],
)
def test_nothing_but_literal_calls_reaches_the_official_eval(text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    task = TASKS["multi_turn_base_0"]
    turns = in_steps(gold(task))
    turns[1].append([text])
    assert official_verdict(task, turns)["turn"] in (None, 1, 2, 3)
    assert official_verdict(task, [[[text]], [], [], []])["valid"] is False
    assert not list(tmp_path.iterdir())
