"""The train stage itself: what a kill while it writes costs."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
from train_cases import group, tiny_policy

from seal.settings.play import CollectParams
from seal.settings.train import TrainParams
from seal.store.files import write_json
from seal.store.tables import write_table
from seal.train import descent
from seal.train.reweight import Factors
from seal.workspace.lineage import path_of

torch = pytest.importorskip("torch")
COLLECTED = [*group("a", 2, 2, ("full", "off")), *group("b", 0, 4)]


class Killed(Exception):
    """Stands for kill -9."""


def policy(_: str):
    made = tiny_policy()
    made.save = lambda out: torch.save(made.model.state_dict(), out / "weights.pt")
    return made


def stage(root: Path) -> SimpleNamespace:
    left = path_of(root, "r0", "train")
    write_json(left / "reweight.json", Factors().to_json())
    write_table(left / "replay.parquet", "replay", [])
    return SimpleNamespace(
        **{"id": "r1", "parent": "r0", "depth": 1, "seed": 0, "priority": (), "env": None},
        entry=SimpleNamespace(train=TrainParams(algorithm="sft", steps=1), collect=CollectParams()),
        path=lambda what, round_id="r1": path_of(root, round_id, what),
        resume_dir=lambda *inputs: root / "resume",
        judged=lambda: COLLECTED,
        interface=lambda round_id: None,
        policy=policy,
    )


def made(root: Path) -> dict[str, bytes]:
    files = [path for what in ("train", "policy") for path in path_of(root, "r1", what).rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize("where", ["write_csv", "atomic_dir", "forget"])
def test_a_kill_after_the_last_step_costs_no_training(where, tmp_path, monkeypatch, capsys):
    """Before its first output stands, before its second, before the state is cleared."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "stages")
    run = runpy.run_path(str(Path(__file__).parents[1] / "stages" / "train.py"))["run"]
    run(stage(tmp_path / "whole"))
    whole, real, calls = made(tmp_path / "whole"), run.__globals__[where], []
    assert {Path(name).name for name in whole} >= {"weights.pt", "weights.parquet", "replay.parquet"}
    assert not (tmp_path / "whole" / "resume").exists()

    def dies(*args, **more):
        calls.append(args)
        if len(calls) == (2 if where == "atomic_dir" else 1):
            raise Killed
        return real(*args, **more)

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setitem(run.__globals__, where, dies)
        run(stage(tmp_path / "killed"))

    def trains(*args):
        raise AssertionError("trained again")

    monkeypatch.setattr(descent, "update", trains)
    run(stage(tmp_path / "killed"))
    assert made(tmp_path / "killed") == whole and not (tmp_path / "killed" / "resume").exists()
