"""Multi-seed comparisons in process: arms x seeds of a few rounds, resumable, summarised with intervals.

Under the output folder each finished round is one file, `<arm>/s<seed>/r<k>.json` (metrics, the advantage's share of
each label, and the outcome of every held-out task), keyed by a digest of its parameters; what is there and fits is not
run again. What the next round begins with lies beside it in `state/` (a round's folder, see seal.pipeline.folder), so
that a line can go on, and what a round in work has played and trained in `begun/`. What all arms of a seed begin with
is in `starts/` (see seal.experiment.starts).
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from seal.core.errors import mended_by
from seal.core.seeds import RoundKey
from seal.experiment.jobs import Job, folder_of
from seal.experiment.results import RECORD, as_outcomes, record
from seal.settings.rounds import Round
from seal.settings.typed import read
from seal.store.files import atomic_dir, forget, read_record, write_json
from seal.train.label_shares import advantage_shares


def run_jobs(
    jobs: Sequence[Job], out: Path, workers: int = 1, on_round: Callable[[str], None] | None = None
) -> list[dict[str, Any]]:
    """Run what is missing, in `workers` processes; returns every record, job by job, in order of depth."""
    say = on_round or (lambda text: None)
    each(partial(run_job, out=out, on_round=say if workers == 1 else None), jobs, workers, say)
    return records(jobs, out)


def each(work: Callable[[Job], str], jobs: Sequence[Job], workers: int, say: Callable[[str], None]) -> None:
    """Do `work` on every job, in `workers` processes if there are to be several; `say` what it returns, in order."""
    if workers > 1:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            for done in pool.map(work, jobs):
                say(done)
    else:
        for job in jobs:
            say(work(job))


def run_job(job: Job, out: Path, on_round: Callable[[str], None] | None = None) -> str:
    """Run the missing rounds of one line. Returns a line about it."""
    folder = folder_of(job, out)
    done = _done(job, folder)
    if done <= len(job.rounds):
        _continue(job, out, done, on_round or (lambda text: None))
    last = read_record(folder / f"r{len(job.rounds)}.json", RECORD)["metrics"]
    return f"{job.arm} seed {job.seed}: strict {100 * last['strict']['mean']:.1f}%"


def records(jobs: Sequence[Job], out: Path) -> list[dict[str, Any]]:
    """{"arm", "seed", "depth"} and what is kept (seal.experiment.results.record) of every finished round of `jobs`."""
    found = []
    for job in jobs:
        for depth in range(_done(job, folder_of(job, out))):
            one = read_record(folder_of(job, out) / f"r{depth}.json", RECORD)
            found.append({"arm": job.arm, "seed": job.seed, "depth": depth, **one})
    return found


def trained_policy(job: Job, out: Path) -> Any:
    """The policy after the last round of a line. The line is run again where it was not kept."""
    folder = folder_of(job, out)
    if _saved(job, folder).get("depth") != len(job.rounds):
        _continue(job, out, len(job.rounds) + 1, lambda text: None)
    return _policy(job, out, folder / "state")


def _policy(job: Job, out: Path, state: Path) -> Any:
    from seal.experiment.starts import policy_of_start
    from seal.policy import load_policy

    return load_policy(state / "policy") if (state / "policy").exists() else policy_of_start(job, out)


def _done(job: Job, folder: Path) -> int:
    """How many rounds, the start's evaluation included, are there and fit."""
    for depth in range(len(job.rounds) + 1):
        path = folder / f"r{depth}.json"
        if not path.exists() or read_record(path, RECORD)["digest"] != job.digest(depth):
            return depth
    return len(job.rounds) + 1


def _saved(job: Job, folder: Path) -> dict[str, Any]:
    """What the checkpoint in `state/` is of; nothing where that round is not this job's."""
    path = folder / "state" / "line.json"
    saved = read_record(path, {"digest": str, "depth": int, "pull": dict}) if path.exists() else {}
    return saved if saved and saved["digest"] == job.digest(saved["depth"]) else {}


def _continue(job: Job, out: Path, done: int, say: Callable[[str], None]) -> None:
    import torch

    from seal.env import load_env
    from seal.experiment.starts import checkpoint_of_start, policy_of_start
    from seal.pipeline.folder import RoundFolder
    from seal.pipeline.phases import Run, run_round
    from seal.pipeline.state import RoundState

    torch.set_num_threads(job.threads)
    env, folder = load_env(job.env, **job.env_options), folder_of(job, out)
    state_folder, saved = folder / "state", _saved(job, folder)
    if saved and saved["depth"] in (done - 1, done):  # done: killed before it was written down
        depth, shares = saved["depth"], saved["pull"]
        with mended_by(f"remove the folder, the line is then run again: rm -r {state_folder}"):
            before = RoundFolder(state_folder, f"r{depth}").checkpoint(policy=_policy(job, out, state_folder))
    else:
        depth, shares, before = 0, {}, checkpoint_of_start(job, out)
    _write(job, folder, depth, before, shares)
    entries = [read(Round, entry, "round", complete=True) for entry in job.rounds]
    from_start = any(entry.train.reference == "start" for entry in entries)
    start_policy = policy_of_start(job, out) if from_start else None
    for done in range(depth, len(entries)):
        depth, entry = done + 1, entries[done]
        key = RoundKey(f"r{depth}", depth, job.seed)
        run = Run(resume_dir=folder / "begun" / job.digest(depth))
        state = run_round(RoundState(key, env, before, start_policy), entry, run)
        before = state.checkpoint()
        shares = advantage_shares(state.trained.weights, [*state.judged, *state.trained.played])
        with atomic_dir(state_folder) as made:
            RoundFolder(made, key.id).write_checkpoint(before)
            write_json(made / "line.json", {"digest": job.digest(depth), "depth": depth, "pull": shares})
        _write(job, folder, depth, before, shares)
        forget(folder / "begun")
        say(f"{job.arm} seed {job.seed} r{depth}: strict {100 * state.metrics['strict']['mean']:.1f}%")


def _write(job: Job, folder: Path, depth: int, finished: Any, shares: Mapping[str, float]) -> None:
    """The record of a finished round (or of the start), a Checkpoint; `shares`: of the advantage, by label."""
    found = record(job.digest(depth), finished.metrics, shares, as_outcomes(finished.evaluations))
    write_json(folder / f"r{depth}.json", found)
