"""Answers in words: the official verdict, on every reference answer and on mutated ones."""

import random

import pytest
from bfcl_cases import CASES
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.core.types import Call
from seal.env import load_env
from seal.env.spoken_answers import ENDED, RESPOND, accepted

agentic = pytest.importorskip("bfcl_eval.eval_checker.agentic_eval.agentic_checker")
TASKS = load_env("bfcl_memory", backends=("rec_sum",)).tasks() + load_env("bfcl_web").tasks()[:100]
ANSWERS = [tuple(task.initial_state["answers"]) for task in TASKS]
FRAMES = (
    "{}",
    "{{'answer': '{}', 'context': 'you told me'}}",
    "It is {}.",
    "not {} but another",
    "x{}x",
    "{}s",
    "({})",
)
EDITS = (str.upper, str.title, lambda t: t.replace(" ", "-"), lambda t: t[1:], lambda t: t[:-1], lambda t: t + "%")


def official(text, answers):
    return agentic.agentic_checker(text, list(answers))["valid"]


def test_every_reference_answer_is_accepted():
    assert len(ANSWERS) == 255
    assert all(accepted(answer, answers) for answers in ANSWERS for answer in answers)


def test_the_verdict_is_the_official_one_on_mutated_answers():
    rng = random.Random(0)
    verdicts = []
    for answers in ANSWERS:
        for _ in range(20):
            text = rng.choice(rng.choice((answers, rng.choice(ANSWERS))))
            for edit in rng.sample(EDITS, rng.randint(0, 2)):
                text = edit(text)
            text = rng.choice(FRAMES).format(text)
            verdicts.append(accepted(text, answers))
            assert verdicts[-1] == official(text, answers), (text, answers)
    assert 0.2 < sum(verdicts) / len(verdicts) < 0.8


@settings(max_examples=200, deadline=None)
@given(
    st.text("ab c.,-_'\"()*^/1%é\n", max_size=12), st.lists(st.text("ab c.-'1%", min_size=1, max_size=4), max_size=3)
)
def test_the_verdict_is_the_official_one_on_any_text(text, answers):
    assert accepted(text, answers) == (bool(text) and official(text, answers))


def test_handed_case():
    case = CASES["env_agentic_word_boundary"]
    assert accepted(case["input"]["response"], case["input"]["answers"]) == case["expected"]["official_valid"]


def test_one_answer_is_heard_and_nothing_after_it():
    env = load_env("bfcl_memory", backends=("rec_sum",))
    task = env.tasks()[0]
    session = env.open(task)
    assert session.stop_reason == "" and session.call(Call("memory_retrieve", {})).raw.startswith('{"memory_content": ')
    right = session.message_call(f"It is {task.initial_state['answers'][0]}")
    told = session.call(right)
    assert (told.raw, told.shown, session.stop_reason) == ('{"accepted": true}', "", "finished")
    assert session.call(Call(RESPOND, {"content": "another guess"})).raw == ENDED
    wrong = env.open(task)
    assert wrong.call(wrong.message_call("I do not know")).raw == '{"accepted": false}'
    assert wrong.call(right).raw == ENDED
