"""The train stage itself: what a kill while it writes costs."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
from train_cases import group, tiny_policy

from seal.core.seeds import RoundKey
from seal.pipeline import folder as folders
from seal.pipeline import stage as stages
from seal.pipeline.folder import RoundFolder
from seal.pipeline.stage import Stage
from seal.pipeline.state import Checkpoint
from seal.settings.play import CollectParams
from seal.settings.train import TrainParams
from seal.train import descent
from seal.workspace.lineage import path_of

torch = pytest.importorskip("torch")
COLLECTED = [*group("a", 2, 2, ("full", "off")), *group("b", 0, 4)]


class Killed(Exception):
    """Stands for kill -9."""


def policy():
    made = tiny_policy()
    made.hash = "p"  # whose rollouts are those of train_cases
    made.save = lambda out: torch.save(made.model.state_dict(), out / "weights.pt")
    return made


class Parent(RoundFolder):
    def checkpoint(self, *fields):
        return Checkpoint(self.id, policy=policy())


class Collected(RoundFolder):
    def judged(self, env):
        return COLLECTED

    def interface(self):
        return None


class TrainStage(Stage):
    """The stage of a round whose rollouts were collected by a tiny policy."""

    key, env = RoundKey("r1", 1, 0), None
    entry = SimpleNamespace(
        train=TrainParams(algorithm="sft", steps=1), collect=CollectParams(), diagnose=SimpleNamespace(priority=())
    )
    folder = property(lambda self: Collected(path_of(self.root, "r1", ""), "r1"))
    parent = property(lambda self: Parent(path_of(self.root, "r0", ""), "r0"))


def stage(root: Path) -> Stage:
    inputs = [("r1", name) for name in ("collect", "verify", "diagnose", "interface.json")]
    for id_, name in [*inputs, *(("r0", name) for name in ("policy", "train/reweight.json", "train/replay.parquet"))]:
        path_of(root, id_, name).parent.mkdir(parents=True, exist_ok=True)
        path_of(root, id_, name).touch()
    return TrainStage(root, None, "r1")


def made(root: Path) -> dict[str, bytes]:
    files = [path for what in ("train", "policy") for path in path_of(root, "r1", what).rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


@pytest.mark.parametrize("where", ["write_csv", "atomic_dir", "forget"])
def test_a_kill_after_the_last_step_costs_no_training(where, tmp_path, monkeypatch, capsys):
    """Before its first output stands, before its second, before the state is cleared."""
    run = runpy.run_path(str(Path(__file__).parents[1] / "stages" / "train.py"))["run"]
    run(stage(tmp_path / "whole"))
    module = stages if where == "forget" else folders
    whole, real, calls = made(tmp_path / "whole"), getattr(module, where), []
    assert {Path(name).name for name in whole} >= {"weights.pt", "weights.parquet", "replay.parquet"}
    assert not any((tmp_path / "whole" / ".seal" / "resume").iterdir())

    def dies(*args, **more):
        calls.append(args)
        if len(calls) == (2 if where == "atomic_dir" else 1):
            raise Killed
        return real(*args, **more)

    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(module, where, dies)
        run(stage(tmp_path / "killed"))

    def trains(*args):
        raise AssertionError("trained again")

    monkeypatch.setattr(descent, "update", trains)
    run(stage(tmp_path / "killed"))
    assert made(tmp_path / "killed") == whole and not any((tmp_path / "killed" / ".seal" / "resume").iterdir())
