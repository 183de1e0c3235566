"""The questions that the documentation asks have answers, and the answers are right."""

import re
from pathlib import Path

import pytest
from store_cases import LINEAGE, write_tree

from seal.workspace.views import ask, connect

PAGE = (Path(__file__).parents[1] / "README.md").read_text()
QUESTIONS = dict(re.findall(r"^#### (.+?)$.*?```sql\n(.*?)```", PAGE, re.M | re.S))


@pytest.fixture(scope="module")
def con(tmp_path_factory):
    return connect(write_tree(tmp_path_factory.mktemp("tree")), LINEAGE)


@pytest.fixture(scope="module")
def answers(con):
    return {title: ask(con, sql).to_pylist() for title, sql in QUESTIONS.items()}


def rows(answers, words: str):
    return next(found for title, found in answers.items() if words in title)


def test_there_are_ten():
    assert len(QUESTIONS) == 10


@pytest.mark.parametrize("title", QUESTIONS)
def test_every_question_has_an_answer(answers, title):
    assert answers[title]


@pytest.mark.parametrize("title", QUESTIONS)
def test_every_question_can_be_asked_of_nothing(tmp_path, title):
    assert not [row for row in ask(connect(tmp_path), QUESTIONS[title]).to_pylist() if row.get("rollouts")]


def test_failures_fall_as_the_policy_gets_better(answers):
    shift = rows(answers, "failures shift")
    totals = {name: sum(row[name] for row in shift) for name in ("r0", "r1", "r2")}
    assert totals["r0"] > totals["r1"] > totals["r2"]


def test_costs_add_up_along_the_line(answers):
    cost = rows(answers, "score cost")
    assert [(row["round"], row["rollouts"]) for row in cost] == [("r0", 0), ("r1", 72), ("r2", 144)]


def test_groups_are_counted_whole(answers):
    groups = rows(answers, "taught nothing")
    assert {(row["phase"], row["train_step"]) for row in groups} == {("collect", 0), ("train", 1)}
    assert all(row["groups"] == 6 and row["zero_variance"] == row["all_pass"] + row["all_fail"] for row in groups)


def test_flips_are_those_of_the_scores(con, answers):
    flips = rows(answers, "flipped")
    for now, before in (("r1", "r0"), ("r2", "r1")):
        solved = {
            name: {
                row["task_id"]
                for row in ask(con, f"FROM evaluations WHERE round = '{name}' AND mode = 'off' AND success").to_pylist()
            }
            for name in (now, before)
        }
        mine = [row for row in flips if row["round"] == now]
        assert {row["task_id"] for row in mine if row["flip"] == "fixed"} == solved[now] - solved[before]
        assert {row["task_id"] for row in mine if row["flip"] == "broken"} == solved[before] - solved[now]


def test_cascades_count_every_consequence_once(con, answers):
    count = "SELECT count(*) AS n FROM diagnoses d WHERE d.primary AND NOT root AND label <> 'env_error'"
    assert ask(con, "SELECT sum(consequences) AS n FROM cascades").to_pylist() == ask(con, count).to_pylist()
    assert sum(row["consequences"] for row in rows(answers, "first mistake")) > 0
