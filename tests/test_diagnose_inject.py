"""The proof: known faults on gold runs are found, named, and blamed on the right turn."""

import ast
import random
from importlib import import_module
from pathlib import Path

import pytest

from seal.cli import main
from seal.core.errors import ArtifactError
from seal.diagnose import diagnose
from seal.diagnose.proof import inject
from seal.diagnose.proof.fault_kinds import KINDS
from seal.diagnose.proof.inject import FORMATS, formats_of, injections, judge, pairs, play
from seal.diagnose.proof.mutations import typo
from seal.diagnose.proof.score import APART, CONTROL, FAULT, PAIR, Score, read_rows, tally, write_rows
from seal.env import load_env
from seal.verify.turns import verify

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "inject.csv"
TARGETS = {"macro_f1": 0.97, "turn_found": 0.99, "all_labels": 0.97, "both": 0.95}


@pytest.fixture(scope="module", params=["shop", "compliance", "bfcl"])
def sample(request):
    """An environment and some of its tasks."""
    env = load_env(request.param)
    tasks = [task for task in env.tasks() if not task.known_bad]
    return env, random.Random(1).sample(tasks, 25 if request.param == "bfcl" else 60)


@pytest.fixture(scope="module")
def rows(sample):
    env, tasks = sample
    return tally([*(judge(env, injected) for injected in injections(env, tasks)), *pairs(env, tasks)])


def meets(result):
    assert result.blamed <= 0.005
    found = {name: getattr(result, name) for name in TARGETS}
    assert all(found[name] >= target for name, target in TARGETS.items()), found


def test_injected_faults_are_diagnosed(rows):
    result = Score([row for row in rows if row.case != PAIR])
    assert result.count(FAULT) > 300
    assert {name for name in TARGETS if getattr(result, name) < TARGETS[name]} == {"both"}  # no pairs among them
    assert result.blamed <= 0.005


def test_two_faults_at_once_are_both_labelled(rows):
    found = Score([row for row in rows if row.case == PAIR])
    assert found.count(PAIR) > 20 and found.both >= (0.9 if found.count(PAIR) < 60 else 0.95)


def test_the_committed_proof_meets_its_targets_and_is_what_this_code_gives():
    committed = read_rows(RESULTS)
    assert sum(row.n for row in committed if row.case in (FAULT, APART, CONTROL)) >= 20_000
    assert {row.kind for row in committed if row.case != PAIR} == set(KINDS)
    for env in ("shop", "compliance", "bfcl"):
        meets(Score([row for row in committed if row.env == env]))
    meets(Score(committed))


def test_a_sample_of_the_proof_is_part_of_the_committed_one(rows):
    """Every outcome of a fault in the sample is one that the whole proof saw."""
    seen = {(row.env, row.kind, row.expected, row.found) for row in read_rows(RESULTS) if row.case == FAULT}
    here = {(row.env, row.kind, row.expected, row.found) for row in rows if row.case == FAULT}
    assert here <= seen


def test_the_injector_knows_nothing_of_the_rules():
    hand = {f"seal.diagnose.proof.{name}" for name in ("fault_kinds", "mutations", "place")}
    for name in hand:
        tree = ast.parse(Path(import_module(name).__file__).read_text())
        found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        names = [f"{node.module}.{alias.name}".split(".") for node in found for alias in node.names]
        ours = {".".join(name[:4]) for name in names if name[:2] == ["seal", "diagnose"]}
        assert found and ours <= hand


def test_the_proof_counts_what_is_wrong(sample, monkeypatch):
    """A diagnosis that never looks must score badly: the figures are not high by construction."""
    env, tasks = sample
    monkeypatch.setattr(
        inject, "diagnose", lambda env, task, rollout, verdicts: diagnose(env, task, play(env, task, {}), verdicts)
    )
    rows = tally(judge(env, injected) for injected in injections(env, tasks[:8]))
    assert Score(rows).macro_f1 < 0.5


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


@pytest.mark.parametrize("format", FORMATS)
def test_gold_is_never_blamed_in_whatever_format_it_is_said(sample, format):
    env, tasks = sample
    for task in [task for task in tasks if format in formats_of(task)]:
        rollout = play(env, task, {}, format)
        assert rollout.stop_reason == "finished"
        rows = diagnose(env, task, rollout, verify(env, task, rollout.calls_by_turn(len(task.turns))))
        assert {row.label for row in rows} <= {"pass", "correct_abstention"}


def test_a_slip_of_the_keyboard_is_small():
    rng = random.Random(0)
    for _ in range(200):
        word = "".join(rng.choices("abcdef_", k=rng.randrange(1, 9)))
        assert abs(len(typo(word, rng)) - len(word)) <= 1


def test_command_prints_the_figures_and_writes_the_counts(tmp_path, capsys):
    path = tmp_path / "inject.csv"
    assert main(["diagnose", "--inject", "--env", "shop", "--n", "5", "--output", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "argument_mismatch" in printed and "macro-F1" in printed and "right turns blamed" in printed
    rows = read_rows(path)
    assert f"{sum(row.n for row in rows if row.case != PAIR):,} trajectories" in printed
    write_rows(path, rows)
    assert read_rows(path) == rows
    path.write_text("env,kind\nshop,drop\n")
    with pytest.raises(ArtifactError, match="inject.csv"):
        read_rows(path)
