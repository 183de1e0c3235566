"""Results that no longer belong to params.yaml say so."""

from pathlib import Path

import pytest

from seal.core.errors import ArtifactError
from seal.settings.params import Params, load_params
from seal.settings.rounds import Defaults, FlowParams, Round, RunParams, Start
from seal.workspace.lineage import Lineage
from seal.workspace.lock import changed_since

PARAMS = """run: {seed: %s}
envs: {shop: {train: %s}}
starts: {r0: {env: shop}}
rounds:
  r1: {parent: r0, train: {lr: %s}}
  r2: {parent: r1, train: {lr: %s}}
"""
LOCK = """schema: '2.0'
stages:
  prepare@shop: {cmd: x, params: {params.yaml: {envs.shop: {train: 9}}}}
  evaluate_start@r0: {cmd: x, params: {params.yaml: {run.seed: 0}}}
  train@r1: {cmd: x, params: {params.yaml: {rounds.r1.train: {lr: 0.0001}}}}
  train@r2: {cmd: x, params: {params.yaml: {rounds.r2.train: {lr: 0.0001}}}}
"""
# r1 was trained anew by itself: what is made of its policy was made of the one before
PARTIAL = """schema: '2.0'
stages:
  prepare@shop: {cmd: x, outs: [{path: data/tasks/shop.parquet, md5: md5_a}]}
  evaluate_start@r0:
    {cmd: x, deps: [{path: data/tasks/shop.parquet, md5: md5_%s}], outs: [{path: data/rounds/r0/evaluate, md5: md5_b}]}
  train@r1: {cmd: x, deps: [{path: data/unmade, md5: md5_c}], outs: [{path: data/rounds/r1/policy, md5: md5_d.dir}]}
  evaluate@r1:
    cmd: x
    deps: [{path: data/rounds/r0/evaluate, md5: md5_%s}, {path: data/rounds/r1/policy, md5: md5_%s}]
    params: {params.yaml: {run.seed: %s}}
    outs: [{path: data/rounds/r1/metrics.json, md5: md5_e}]
  evaluate@r2: {cmd: x, deps: [{path: data/rounds/r1/metrics.json, md5: md5_%s}]}
"""
TASKS, START, POLICY = "data/tasks/shop.parquet", "data/rounds/r0/evaluate", "data/rounds/r1/policy"
METRICS = "data/rounds/r1/metrics.json"
READ = [
    (("a", "b", "d.dir", 0, "e"), {}),
    (("x", "b", "d.dir", 0, "e"), {"r0": TASKS, "r1": TASKS, "r2": TASKS}),
    (("a", "x", "d.dir", 0, "e"), {"r1": START, "r2": START}),
    (("a", "b", "x.dir", 0, "e"), {"r1": POLICY, "r2": POLICY}),
    (("a", "b", "d.dir", 0, "x"), {"r2": METRICS}),
    (("a", "b", "x.dir", 1, "x"), {"r1": "run.seed", "r2": "run.seed"}),
]
CASES = [
    ((0, 9, "1e-4", "1e-4"), {}),
    ((0, 9, "1e-4", "2e-4"), {"r2": "rounds.r2.train"}),
    ((0, 9, "2e-4", "1e-4"), {"r1": "rounds.r1.train", "r2": "rounds.r1.train"}),
    ((1, 9, "1e-4", "1e-4"), {"r0": "run.seed", "r1": "run.seed", "r2": "run.seed"}),
    ((0, 8, "1e-4", "1e-4"), {"r0": "envs.shop", "r1": "envs.shop", "r2": "envs.shop"}),
]


ROUNDS = {name: Round(parent=parent, env="shop", **dict(Defaults())) for name, parent in (("r1", "r0"), ("r2", "r1"))}
STARTS = {"r0": Start(env="shop", policy={})}
LINEAGE = Lineage(Params(RunParams(), FlowParams(), {"shop": {}}, STARTS, Defaults(), ROUNDS))


@pytest.mark.parametrize("text", ["", "[]", "3", "stages: 3", "stages: {a: 3}", "stages: {a: {params: 3}}",
                                  "stages: {a: {params: {params.yaml: [1]}}}", "stages: {a: {deps: 3}}",
                                  "stages: {a: {outs: [3]}}", "stages: {a: {deps: [{md5: x}]}}", "stages: {a: [",
                                  f"{LOCK}schema: '2.0'\n", LOCK.replace("2.0", "9"), LOCK.replace("cmd", "comd"),
                                  "\0", f"<<<<<<< HEAD\n{LOCK}"])  # fmt: skip
def test_a_lock_that_is_none_is_one_error(tmp_path, text):
    (tmp_path / "params.yaml").write_text(PARAMS % CASES[0][0])
    (tmp_path / "dvc.lock").write_text(text)
    with pytest.raises(ArtifactError, match=r"dvc\.lock(.|\n)*git checkout -- "):
        changed_since(tmp_path, LINEAGE)


@pytest.mark.parametrize(("values", "expected"), CASES)
def test_a_change_makes_a_round_and_its_descendants_old(tmp_path, values, expected):
    (tmp_path / "params.yaml").write_text(PARAMS % values)
    assert changed_since(tmp_path, LINEAGE) == {}  # nothing ran yet
    (tmp_path / "dvc.lock").write_text(LOCK)
    assert changed_since(tmp_path, LINEAGE) == expected


@pytest.mark.parametrize(("values", "expected"), READ)
def test_what_was_made_of_outputs_since_made_anew_is_old(tmp_path, values, expected):
    (tmp_path / "params.yaml").write_text(PARAMS % CASES[0][0])
    (tmp_path / "dvc.lock").write_text(PARTIAL % values)
    assert changed_since(tmp_path, LINEAGE) == expected


def test_nothing_is_old_in_the_lock_that_is_committed():
    root = Path(__file__).parents[1]
    assert changed_since(root, Lineage(load_params(root / "params.yaml"))) == {}
