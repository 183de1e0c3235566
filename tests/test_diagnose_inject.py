"""The proof: known faults on gold runs are found, named, and blamed on the right turn."""

import random

import pytest

from seal.commands.diagnose import inject as print_figures
from seal.diagnose import diagnose, inject
from seal.diagnose.inject import injections, judge, pairs, play
from seal.diagnose.score import score
from seal.env import load_env
from seal.verify.turns import verify


@pytest.fixture(scope="module", params=["shop", "compliance", "bfcl"])
def sample(request):
    """An environment and some of its tasks."""
    env = load_env(request.param)
    tasks = list(env.tasks())
    return env, random.Random(1).sample(tasks, 30 if request.param == "bfcl" else 60)


def test_injected_faults_are_diagnosed(sample):
    env, tasks = sample
    result = score(judge(env, injected) for injected in injections(env, tasks))
    assert result.n > 300
    assert result.macro_f1 >= 0.97
    assert result.turn_found >= 0.99
    assert result.blamed <= 0.005
    assert result.labels_present >= 0.97


def test_two_faults_at_once_are_both_labelled(sample):
    env, tasks = sample
    both = [pair.both for pair in pairs(env, tasks)]
    assert len(both) > 15 and sum(both) / len(both) >= 0.95


def test_the_proof_counts_what_is_wrong(sample, monkeypatch):
    """A diagnosis that never looks must score badly: the figures are not high by construction."""
    env, tasks = sample
    monkeypatch.setattr(
        inject, "diagnose", lambda env, task, rollout, verdicts: diagnose(env, task, play(env, task, {}), verdicts)
    )
    result = score(judge(env, injected) for injected in injections(env, tasks[:8]))
    assert result.macro_f1 < 0.5


def test_every_turn_has_labels_and_one_primary_and_it_is_deterministic(sample):
    env, tasks = sample
    for injected in injections(env, tasks[:8], seed=3):
        rows = diagnose(env, injected.task, injected.rollout, injected.verdicts)
        assert rows == diagnose(env, injected.task, injected.rollout, injected.verdicts)
        turns = range(len(injected.task.turns))
        assert [sum(row.primary for row in rows if row.turn == k) for k in turns] == [1] * len(turns)
        firsts = [row for row in rows if row.primary]
        assert all(row.root or row.evidence["from_turn"] < row.turn for row in firsts)
        assert all(0 < row.confidence <= 1 for row in rows)


def test_gold_is_never_blamed(sample):
    env, tasks = sample
    for task in tasks:
        rollout = play(env, task, {})
        if rollout.stop_reason == "finished":
            rows = diagnose(env, task, rollout, verify(env, task, rollout.calls_by_turn(len(task.turns))))
            assert {row.label for row in rows} <= {"pass", "correct_abstention"}


def test_command_prints_the_figures(capsys):
    print_figures("shop", 5, 0)
    printed = capsys.readouterr().out
    assert "argument_mismatch" in printed and "macro-F1" in printed and "right turns blamed" in printed
