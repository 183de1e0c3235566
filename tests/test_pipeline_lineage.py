"""The tree of rounds."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.core.errors import RoundError
from seal.pipeline.convergence import converged, dev_scores
from seal.settings.params import parse_params
from seal.settings.play import EvaluateParams
from seal.settings.rounds import Defaults
from seal.settings.typed import plain
from seal.workspace.lineage import Lineage, find_root, path_of


def lineage(parents: dict[str, str]) -> Lineage:
    entries = {k: {"parent": v, "env": "shop", "recipe": 1, **plain(Defaults())} for k, v in parents.items()}
    start = {"env": "shop", "recipe": 1, "policy": {"kind": "scripted"}, "evaluate": plain(EvaluateParams())}
    return Lineage(parse_params({"envs": {"shop": {}}, "starts": {"r0": start}, "rounds": entries}))


TREE = lineage({"r1": "r0", "r2": "r1", "b2": "r1", "b3": "b2"})


def test_lines_depths_and_children():
    assert TREE.line("b3") == ("r0", "r1", "b2", "b3")
    assert (TREE.depth("r0"), TREE.depth("r2"), TREE.depth("b2")) == (0, 2, 2)
    assert TREE.children("r1") == ("r2", "b2")
    assert TREE.start("b3") == "r0"
    assert [name for name, _ in TREE.walk()] == ["r0", "r1", "r2", "b2", "b3"]
    assert TREE.parent("r0") == ""


def test_an_unknown_round_names_the_nearest():
    with pytest.raises(RoundError, match="did you mean b3"):
        TREE.entry("b33")
    with pytest.raises(RoundError, match="is a start"):
        TREE.round("r0")


@given(st.lists(st.integers(0, 30), max_size=12))
def test_walk_meets_every_round_once_after_its_parent(choices):
    parents: dict[str, str] = {}
    for i, choice in enumerate(choices, 1):
        parents[f"r{i}"] = f"r{choice % i}"
    order = [name for name, _ in lineage(parents).walk()]
    assert sorted(order) == sorted(["r0", *parents])
    assert all(order.index(parent) < order.index(name) for name, parent in parents.items())


def test_a_workspace_is_found_from_inside_it(tmp_path):
    for name in ("params.yaml", "dvc.yaml"):
        (tmp_path / name).touch()
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert find_root(tmp_path / "a" / "b") == tmp_path.resolve()
    with pytest.raises(RoundError, match="params.yaml"):
        find_root(Path("/"))
    assert path_of(tmp_path, "r1", "collect") == tmp_path / "data" / "rounds" / "r1" / "collect"


@pytest.mark.parametrize(
    ("scores", "patience", "stops"),
    [
        ([0.1], 1, False),
        ([0.1, 0.1], 1, True),
        ([0.1, 0.2, 0.2], 1, True),
        ([0.1, 0.2, 0.2], 2, False),
        ([0.1, 0.3, 0.2, 0.3], 2, True),
        ([0.1, 0.3, 0.2, 0.31], 2, False),
    ],
)
def test_convergence_reads_the_last_rounds_against_the_best_before(scores, patience, stops):
    assert bool(converged(scores, patience)) == stops


def test_a_line_whose_dev_split_is_not_played_goes_on():
    assert dev_scores([{}, {"dev": {"mean": 0.0, "n": 0}}] * 4) == []
    assert dev_scores([{"dev": {"mean": 0.1, "n": 2}}, {}, {}]) == [0.1]
    assert converged([], patience=1) == ""
