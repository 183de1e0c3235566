"""How every stage script runs: the round on its command line, errors as exit codes, its seconds."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from seal.core.errors import ParamError, as_seal_error
from seal.pipeline.stage import Stage
from seal.settings.params import load_params
from seal.store.files import read_record, write_json
from seal.train.ranks import launch
from seal.workspace.dvc import write_error
from seal.workspace.lineage import STAGES, Lineage, find_root


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
        timings = stage.path("timings.json")  # seconds of the last run of each stage, which no one tracks
        seconds = read_record(timings) if timings.exists() else {}  # a damaged file is told before the work
        if name == "train" and "LOCAL_RANK" not in os.environ:
            launch(os.environ.get("SEAL_LAUNCH", ""))
        if name in STAGES:
            lineage.check_trains(stage.id)
        work(stage)
        if stage.id not in lineage.params.envs and os.environ.get("RANK", "0") == "0":
            write_json(timings, {**seconds, name: round(time.monotonic() - started, 1)})
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        told = as_seal_error(error)
        if not write_error(told):
            print(f"error: {told}", file=sys.stderr)
        sys.exit(told.exit_code)
