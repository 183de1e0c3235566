"""What every stage script has in common: its entry of params.yaml, its paths, errors as exit codes."""

import hashlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from seal.core.errors import ParamError, clear
from seal.core.params import load_params
from seal.env import env_of
from seal.env.base import Environment
from seal.interface.state import InterfaceState, load_interface
from seal.policy import load_policy, look_at
from seal.rollout.actions import ActionLog
from seal.store.files import read_json, tree_hash, write_json
from seal.store.lineage import STAGES, Lineage, find_root, path_of
from seal.store.repro import write_error
from seal.train.judged import Judged
from seal.train.ranks import launch
from seal.train.stored import read_judged


@dataclass(frozen=True)
class Stage:
    """One run of a stage for one round or start, `id`."""

    root: Path
    lineage: Lineage
    id: str

    @cached_property
    def entry(self) -> Any:
        """The round's (or the start's) parameters."""
        return self.lineage.entry(self.id)

    @property
    def parent(self) -> str:
        return self.lineage.parent(self.id)

    @property
    def depth(self) -> int:
        return self.lineage.depth(self.id)

    @property
    def seed(self) -> int:
        return self.lineage.params.run.seed

    @cached_property
    def env(self) -> Environment:
        return env_of(self.lineage.params, self.entry.env)

    def path(self, what: str, round_id: str = "") -> Path:
        return path_of(self.root, round_id or self.id, what)

    def policy(self, round_id: str, plays: bool = True) -> Any:
        """A round's policy. One that need not play is only looked at."""
        return (load_policy if plays else look_at)(self.path("policy", round_id))

    def interface(self, round_id: str) -> InterfaceState:
        return load_interface(self.path("interface.json", round_id))

    @property
    def priority(self) -> Sequence[str]:
        """The order of labels: the round's own, or what its diagnose stage drew from the collected rollouts."""
        setting = self.entry.diagnose.priority
        return read_json(self.path("diagnose") / "priority.json") if isinstance(setting, str) else setting

    def judged(self) -> list[Judged]:
        """The round's collected rollouts with their verdicts, outcomes and diagnoses."""
        return read_judged(self.path("collect"), self.path("verify"), self.path("diagnose"))

    def resume_dir(self, *inputs: Path) -> Path:
        """An ignored folder for the state of an interrupted run, which belongs to these inputs and parameters alone.

        The stage forgets it once its outputs stand.
        """
        parts = (self.id, self.seed, self.entry, *map(tree_hash, inputs))
        digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()
        return self.root / ".seal" / "resume" / digest

    def log(self, round_id: str) -> ActionLog:
        """Where what a round's policy plays under its interface is kept until then."""
        return ActionLog(self.resume_dir(*(self.path(what, round_id) for what in ("policy", "interface.json"))))


def main(work: Callable[[Stage], None]) -> None:
    """Run `work` for the id on the command line. Ends the process: 0, or the error's exit code."""
    started, name = time.monotonic(), Path(sys.argv[0]).stem
    try:
        if len(sys.argv) != 2:
            raise ParamError(f"stages/{name}.py", sys.argv[1:], f"name one round: python stages/{name}.py r1")
        root = find_root()
        lineage = Lineage(load_params(root / "params.yaml"))
        os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(lineage.params.run.threads)
        os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
        stage = Stage(root, lineage, sys.argv[1])
        if name == "train" and "LOCAL_RANK" not in os.environ:
            launch(os.environ.get("SEAL_LAUNCH", ""))
        if name in STAGES:
            lineage.check_trains(stage.id)
        work(stage)
        _clock(stage, name, time.monotonic() - started)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        told = clear(error)
        if not write_error(told):
            print(f"error: {told}", file=sys.stderr)
        sys.exit(told.exit_code)


def _clock(stage: Stage, name: str, seconds: float) -> None:
    """Seconds of the last run of each stage: timings.json, which no one tracks."""
    if stage.id in stage.lineage.params.envs or os.environ.get("RANK", "0") != "0":
        return
    path = stage.path("timings.json")
    known = read_json(path) if path.exists() else {}
    write_json(path, {**known, name: round(seconds, 1)})
