"""Multi-seed comparisons in process: arms x seeds of a few rounds, resumable, summarised with intervals.

Under the output folder each finished round is one file, `<arm>/s<seed>/r<k>.json` (metrics, what each label pulled in
training, and the outcome of every held-out task), keyed by a digest of its parameters; what is there and fits is not
run again. The last round's policy and interface lie beside it in `state/`, so that a line can go on, and what a round
in work has played and trained in `begun/`. What all arms of a seed begin with is in `starts/` (see
seal.experiment.starts).
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from seal.core.errors import mended_by
from seal.experiment.jobs import Job, folder_of
from seal.experiment.results import METRICS, OUTCOME, RECORD, as_outcomes, record
from seal.interface.state import load_interface
from seal.settings.params import Round
from seal.settings.typed import read
from seal.store.files import forget, read_record, write_json
from seal.store.tables import write_table
from seal.train.label_shares import advantage_shares
from seal.train.replay import replay_of, rows_of_replay
from seal.train.reweight import Factors


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
            kept = read_record(folder_of(job, out) / f"r{depth}.json", RECORD)
            found.append({"arm": job.arm, "seed": job.seed, "depth": depth, **kept})
    return found


def trained_policy(job: Job, out: Path) -> Any:
    """The policy after the last round of a line. The line is run again where it was not kept."""
    from seal.experiment.starts import policy_of_start
    from seal.policy import load_policy

    folder = folder_of(job, out)
    if _kept(job, folder).get("depth") != len(job.rounds):
        _continue(job, out, len(job.rounds) + 1, lambda text: None)
    if not (folder / "state" / "policy").exists():  # it has no weights
        return policy_of_start(job, out)
    return load_policy(folder / "state" / "policy")


def _kept(job: Job, folder: Path) -> dict[str, Any]:
    """line.json of the round whose policy is kept, where that round is one of this job's; else nothing."""
    path = folder / "state" / "line.json"
    kept = read_record(path, _LINE) if path.exists() else {}
    return kept if kept and kept["digest"] == job.digest(kept["depth"]) else {}


def _done(job: Job, folder: Path) -> int:
    """How many rounds, the start's evaluation included, are there and fit."""
    for depth in range(len(job.rounds) + 1):
        path = folder / f"r{depth}.json"
        if not path.exists() or read_record(path, RECORD)["digest"] != job.digest(depth):
            return depth
    return len(job.rounds) + 1


def _continue(job: Job, out: Path, done: int, say: Callable[[str], None]) -> None:
    import torch

    from seal.env import load_env
    from seal.experiment.starts import line_of_start, policy_of_start
    from seal.pipeline.rounds import Line, run_round
    from seal.policy import load_policy

    torch.set_num_threads(job.threads)
    env, folder = load_env(job.env, **job.env_options), folder_of(job, out)
    state, kept = folder / "state", _kept(job, folder)
    resumed = bool(kept) and kept["depth"] in (done - 1, done)  # done: killed before it was written down
    if resumed:
        trained = (state / "policy").exists()
        with mended_by(f"remove the folder, the line is then run again: rm -r {state}"):
            line = Line(
                policy=load_policy(state / "policy") if trained else policy_of_start(job, out),
                interface=load_interface(state / "interface.json"),
                factors=Factors.of_json(kept["factors"]),
                replay=replay_of(state / "replay.parquet"),
                **{name: kept[name] for name in _OF_LINE},
            )
    else:
        line = line_of_start(job, out)
    if any(entry["train"].get("reference") == "start" for entry in job.rounds):
        line = replace(line, start=policy_of_start(job, out))
    _write(job, folder, line, kept["pull"] if resumed else {})
    for depth in range(line.depth + 1, len(job.rounds) + 1):
        entry = read(Round, job.rounds[depth - 1], "round", complete=True)
        resume_dir = folder / "begun" / job.digest(depth)
        line, played = run_round(env, line, entry, f"r{depth}", job.seed, resume_dir=resume_dir)
        pulled = advantage_shares(played.trained.weights, [*played.collected, *played.trained.played])
        _keep(job, state, line, pulled)
        _write(job, folder, line, pulled)
        forget(folder / "begun")
        say(f"{job.arm} seed {job.seed} r{depth}: strict {100 * line.metrics['strict']['mean']:.1f}%")


_OF_LINE = {
    **{"round_id": str, "depth": int, "profile": [dict], "metrics": METRICS},
    **dict.fromkeys(("rows", "start_rows"), [dict.fromkeys(OUTCOME, object)]),
}
_LINE = {"digest": str, "factors": dict, "pull": dict, **_OF_LINE}


def _keep(job: Job, state: Path, line: Any, pulled: Mapping[str, float]) -> None:
    """What the next round needs; line.json last, so that it vouches for the rest."""
    shutil.rmtree(state, ignore_errors=True)
    if hasattr(line.policy, "save"):  # one without weights is as it was at the start
        line.policy.save(state / "policy")
    state.mkdir(parents=True, exist_ok=True)
    (state / "interface.json").write_text(line.interface.to_json())
    write_table(state / "replay.parquet", "replay", rows_of_replay(line.replay, line.round_id))
    kept = {name: getattr(line, name) for name in _OF_LINE}
    own = {"digest": job.digest(line.depth), "factors": line.factors.to_json(), "pull": dict(pulled)}
    write_json(state / "line.json", {**own, **kept})


def _write(job: Job, folder: Path, line: Any, pulled: Mapping[str, float]) -> None:
    kept = record(job.digest(line.depth), line.metrics, pulled, as_outcomes(line.rows))
    write_json(folder / f"r{line.depth}.json", kept)
