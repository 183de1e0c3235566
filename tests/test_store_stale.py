"""Results that no longer belong to params.yaml say so."""

import pytest

from seal.core.errors import ArtifactError
from seal.core.params import Params
from seal.core.settings import (
    CollectParams,
    Defaults,
    DiagnoseParams,
    EvaluateParams,
    EvolveParams,
    FlowParams,
    Round,
    RunParams,
    Start,
    TrainParams,
)
from seal.store.lineage import Lineage
from seal.store.stale import changed_since

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
CASES = [
    ((0, 9, "1e-4", "1e-4"), {}),
    ((0, 9, "1e-4", "2e-4"), {"r2": "rounds.r2.train"}),
    ((0, 9, "2e-4", "1e-4"), {"r1": "rounds.r1.train", "r2": "rounds.r1.train"}),
    ((1, 9, "1e-4", "1e-4"), {"r0": "run.seed", "r1": "run.seed", "r2": "run.seed"}),
    ((0, 8, "1e-4", "1e-4"), {"r0": "envs.shop", "r1": "envs.shop", "r2": "envs.shop"}),
]


PARTS = (CollectParams(), DiagnoseParams(), EvolveParams(), TrainParams(), EvaluateParams())
ROUNDS = {name: Round(parent, "shop", *PARTS) for name, parent in (("r1", "r0"), ("r2", "r1"))}
LINEAGE = Lineage(Params(RunParams(), FlowParams(), {"shop": {}}, {"r0": Start("shop", {})}, Defaults(), ROUNDS))


@pytest.mark.parametrize("text", ["", "[]", "3", "stages: 3", "stages: {a: 3}", "stages: {a: {params: 3}}",
                                  "stages: {a: {params: {params.yaml: [1]}}}"])  # fmt: skip
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
