"""Whole rounds through the real stages, on a tiny shop with scripted policies: what comes out, and what breaks."""

import runpy
import shutil
import subprocess
import sys

import pytest
from workspaces import ROOT, command, commit, dvc, seal, workspace

from seal.core.errors import ArtifactError
from seal.pipeline import folder as folders
from seal.policy.scripted import FaultyPolicy
from seal.settings.params import load_params, load_yaml
from seal.store.files import tree_hash
from seal.store.schemas import OF_ROUND, OF_START, OF_TRAINING
from seal.store.tables import read_table, write_table
from seal.workspace.dvc import repro
from seal.workspace.lineage import STAGES, Lineage

pytestmark = pytest.mark.slow
PARAMS = """run: {seed: 1}
envs:
  shop: {seed: 0, train: 8, dev: 3, test: 5}
starts:
  r0:
    env: shop
    recipe: 1
    policy: {kind: scripted, variant: faulty, rate: 0.4}
    evaluate: {split: test, tasks: 0, trials: 1, temperature: 0.0, measure_on: true, max_action_tokens: 24, context: 64}
defaults:
  collect: {tasks: 6, group_size: 4, evolved: 2}
  train: {algorithm: none}
rounds:
"""


def made(folder, rounds: int = 2):
    workspace(folder, PARAMS, plain=False)
    for _ in range(rounds):
        seal(folder, "round", "new")
    dvc(folder, "repro")
    commit(folder)
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """r0 -> r1 -> r2, run and committed. Tests copy it."""
    return made(tmp_path_factory.mktemp("finished") / "w")


@pytest.fixture
def tree(finished, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    shutil.copytree(finished, tmp_path / "w", symlinks=True)
    return tmp_path / "w"


def locked(folder):
    return load_yaml(folder / "dvc.lock")["stages"]


def test_every_table_is_there_and_reads(finished):
    for path in sorted((finished / "data").rglob("*.parquet")):
        name = {"start": "evaluations", "shop": "tasks"}.get(path.stem, path.stem)
        assert read_table(path, name).num_rows >= 0
    for round_id, stages in (("r0", OF_START), ("r1", OF_ROUND), ("r2", OF_ROUND)):
        for stage, names in stages.items():
            there = {path.stem for path in (finished / "data" / "rounds" / round_id / stage).glob("*.parquet")}
            assert there - {"start"} == set(names).difference(OF_TRAINING if stage == "train" else ()), stage
    collected = finished / "data" / "rounds" / "r1" / "collect" / "trajectories.parquet"
    rows = read_table(collected, "trajectories").to_pylist()
    assert len(rows) == 24
    assert {row["interface_mode"] for row in rows} == {"off"}  # the start's interface is bare
    rows = read_table(
        finished / "data" / "rounds" / "r2" / "collect" / "trajectories.parquet", "trajectories"
    ).to_pylist()
    assert sum(row["interface_mode"] == "full" for row in rows) == 12
    assert {row["category"] for row in rows} <= {"base", "miss_func", "miss_param", "long_context"}


def test_two_workspaces_give_the_same_bytes(finished, tmp_path):
    one, two = locked(made(tmp_path / "other", rounds=1)), locked(finished)
    assert len(one) == 9
    assert one == {name: two[name] for name in one}


def test_the_command_line_shows_what_is_there(tree):
    listed = seal(tree, "round", "list").stdout
    assert listed.count("strict") == 3
    done = seal(tree, "run")
    assert "everything is up to date" in done.stdout
    assert "r2" in done.stdout
    assert (tree / "data" / "report.html").exists()


def test_a_replay_of_a_real_round_is_exact(tree):
    assert seal(tree, "replay", "r2").stdout.startswith("EXACT: r2")


def test_an_unchanged_branch_equals_its_sibling(tree):
    seal(tree, "round", "branch", "b2", "--from", "r1")
    before = locked(tree)
    dvc(tree, "repro")
    after = locked(tree)
    assert {name: after[name] for name in before} == before
    one, two = (read_table(tree / f"data/rounds/{r}/collect/steps.parquet", "steps").to_pylist() for r in ("r2", "b2"))
    assert sorted(row["text"] for row in one) == sorted(row["text"] for row in two)
    metrics = [load_yaml(tree / f"data/rounds/{name}/metrics.json") for name in ("r2", "b2")]
    assert metrics[0]["strict"] == metrics[1]["strict"]


def stage(folder, name: str, key: str) -> subprocess.CompletedProcess:
    return command(folder, sys.executable, f"stages/{name}.py", key, check=False)


@pytest.mark.parametrize("name,key", [("collect", "r2"), ("evaluate", "r2"), ("evaluate_start", "r0")])
def test_a_stage_killed_while_it_writes_plays_nothing_again(tree, name, key, monkeypatch):
    monkeypatch.chdir(tree)
    run = runpy.run_path(str(tree / "stages" / f"{name}.py"))["run"]
    work = run.__globals__["Stage"](tree, Lineage(load_params(tree / "params.yaml")), key)
    folder = work.folder.path / ("evaluate" if name == "evaluate_start" else name)
    whole = tree_hash(folder)

    def killed(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(folders, "atomic_dir", killed)
        run(work)
    assert any((tree / ".seal" / "resume").iterdir())
    monkeypatch.setattr(FaultyPolicy, "act", killed)
    shutil.rmtree(folder)
    run(work)
    assert tree_hash(folder) == whole and not any((tree / ".seal" / "resume").iterdir())


@pytest.mark.parametrize("damage", ["missing", "truncated", "not parquet"])
def test_a_damaged_table_is_one_clear_error(tree, damage):
    path = tree / "data" / "rounds" / "r1" / "collect" / "steps.parquet"
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes(content[:100] if damage == "truncated" else b"hello")
    done = stage(tree, "verify", "r1")
    assert done.returncode == 3
    assert done.stderr.startswith("error: table: ")
    assert "steps.parquet" in done.stderr
    assert "Traceback" not in done.stderr
    with pytest.raises(ArtifactError, match="steps.parquet"):
        repro(tree, ["verify@r1"])
    dvc(tree, "repro")  # mends it: from the cache, or by running collect again
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", ["verify", "diagnose", "evolve_interface", "train"])
def test_a_rollout_of_a_task_that_there_is_not_is_one_clear_error(tree, name):
    path = tree / "data" / "rounds" / "r1" / "collect" / "trajectories.parquet"
    table = read_table(path, "trajectories")
    rows = [{**row, "task_id": "nope" if not i else row["task_id"]} for i, row in enumerate(table.to_pylist())]
    path.unlink()  # a link into the cache
    write_table(path, "trajectories", rows)
    done = stage(tree, name, "r1")
    assert done.returncode == 3 and "shop has no task nope" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("table", ["verdicts", "outcomes"])
def test_a_rollout_that_verify_left_out_is_one_clear_error(tree, table):
    path = tree / "data" / "rounds" / "r1" / "verify" / f"{table}.parquet"
    rows = read_table(path, table).to_pylist()
    path.unlink()  # a link into the cache
    write_table(path, table, [row for row in rows if row["rollout_id"] != rows[0]["rollout_id"]])
    done = stage(tree, "diagnose", "r1")
    assert done.returncode == 3 and "verify" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (("lr: 0.0003", "lrr: 0.0003"), 2, "rounds.r1.train.lrr"),
        (("group_size: 4", "group_size: many"), 2, "rounds.r1.collect.group_size"),
        (("parent: r1", "parent: r7"), 2, "rounds.r2.parent"),
    ],
)
def test_a_wrong_parameter_is_one_clear_error(tree, change, code, said):
    path = tree / "params.yaml"
    head, tail = path.read_text().split("rounds:\n")
    path.write_text(head + "rounds:\n" + tail.replace(*change))
    for done in (stage(tree, "collect", "r1"), seal(tree, "run", check=False)):
        assert done.returncode == code
        assert done.stderr.startswith(f"error: {said}: ")
        assert "Traceback" not in done.stderr


def test_an_unknown_round_is_one_clear_error(tree):
    for name in STAGES:
        done = stage(tree, name, "r9")
        assert done.returncode == 5
        assert done.stderr.startswith("error: round: r9")
    assert seal(tree, "replay", "r9", check=False).returncode == 5
