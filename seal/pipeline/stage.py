"""One run of a pipeline stage: its entry of params.yaml, its folders, and the process that it is."""

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from seal.core.errors import ParamError, as_seal_error
from seal.core.seeds import RoundKey
from seal.env import env_of
from seal.env.base import Environment
from seal.pipeline.folder import RoundFolder
from seal.pipeline.phases import Run
from seal.pipeline.state import Checkpoint, RoundState
from seal.settings.params import load_params
from seal.store.files import forget, read_record, tree_hash, write_json
from seal.train.ranks import launch, rank
from seal.workspace.dvc import write_error
from seal.workspace.lineage import STAGES, Lineage, find_root, path_of, tasks_path


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
    def key(self) -> RoundKey:
        return RoundKey(self.id, self.lineage.depth(self.id), self.lineage.params.run.seed)

    @cached_property
    def env(self) -> Environment:
        return env_of(self.lineage.params, self.entry.env)

    @property
    def folder(self) -> RoundFolder:
        return self._folder(self.id)

    @property
    def parent(self) -> RoundFolder:
        return self._folder(self.lineage.parent(self.id))

    @property
    def start(self) -> RoundFolder:
        """Of the start of the round's line."""
        return self._folder(self.lineage.start(self.id))

    @property
    def task_table(self) -> Path:
        return tasks_path(self.root, self.entry.env)

    def state(self, parent: Checkpoint, **fields: Any) -> RoundState:
        return RoundState(self.key, self.env, parent, **fields)

    @contextmanager
    def run(self, total: int | None, unit: str, *inputs: Path) -> Iterator[Run]:
        """How the stage's phase runs, with a bar on stderr of `total` steps.

        What the phase keeps for the case that it is killed belongs to these inputs and the stage's parameters alone;
        it goes when the block, which also writes what the phase made, ends well.
        """
        from tqdm import tqdm

        parts = (self.id, self.key.run_seed, self.entry, *map(tree_hash, inputs))
        digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()
        resume_dir = self.root / ".seal" / "resume" / digest
        # DVC runs stages without a terminal of their own, so its width cannot be asked for
        look = {"desc": f"{f'{_name()}@{self.id}':<22}", "ncols": 88, "mininterval": 0.5, "file": sys.stderr}
        with tqdm(total=total, unit=unit, **look) as bar:
            yield Run(lambda n: bar.update(n), resume_dir)
        if not rank().number:
            forget(resume_dir)

    def _folder(self, round_id: str) -> RoundFolder:
        return RoundFolder(path_of(self.root, round_id, ""), round_id)


def main(work: Callable[[Stage], None]) -> None:
    """Run `work` for the id on the command line. Ends the process: 0, or the error's exit code."""
    started, name = time.monotonic(), _name()
    try:
        if len(sys.argv) != 2:
            raise ParamError(f"stages/{name}.py", sys.argv[1:], f"name one round: python stages/{name}.py r1")
        root = find_root()
        lineage = Lineage(load_params(root / "params.yaml"))
        os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = str(lineage.params.run.threads)
        os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
        stage = Stage(root, lineage, sys.argv[1])
        timings = stage.folder.path / "timings.json"  # seconds of the last run of each stage, which no one tracks
        seconds = read_record(timings) if timings.exists() else {}  # a damaged file is reported before the work
        if name == "train" and "LOCAL_RANK" not in os.environ:
            launch(os.environ.get("SEAL_LAUNCH", ""))
        if name in STAGES:
            lineage.check_trains(stage.id)
        work(stage)
        if stage.id not in lineage.params.envs and not rank().number:
            write_json(timings, {**seconds, name: round(time.monotonic() - started, 1)})
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        known = as_seal_error(error)
        if not write_error(known):
            print(f"error: {known}", file=sys.stderr)
        sys.exit(known.exit_code)


def _name() -> str:
    """Of the stage that this process is."""
    return Path(sys.argv[0]).stem
