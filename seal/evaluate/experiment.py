"""Multi-seed comparisons in process: arms x seeds of a few rounds, resumable, summarised with intervals.

Under the output folder each finished round is one file, `<arm>/s<seed>/r<k>.json` (metrics, what each label pulled in
training, and the outcome of every held-out task), keyed by a digest of its parameters; what is there and fits is not
run again. The last round's policy and interface lie beside it in `state/`, so that a line can go on.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from seal.core.env_settings import ENVS
from seal.core.errors import ParamError
from seal.core.params import Params, Round, Start
from seal.core.typed import plain, read
from seal.evaluate.arms import ARMS, EXPERIMENTS, changes_of
from seal.evaluate.results import OUTCOME, record
from seal.interface.state import load_interface
from seal.store.files import read_json, write_json
from seal.store.params_file import merged, resolve
from seal.store.tables import write_table
from seal.train.pull import pull
from seal.train.replay import replay_of, rows_of_replay
from seal.train.reweight import Factors


@dataclass(frozen=True, slots=True)
class Job:
    """One line of rounds: an arm under one run seed. `rounds` are complete, one entry a round; all plain values."""

    arm: str
    seed: int
    env: str
    env_options: Mapping[str, Any]
    start: Mapping[str, Any]
    rounds: tuple[Mapping[str, Any], ...]
    threads: int = 1

    def digest(self, depth: int) -> str:
        """Of everything that decides the round at `depth`. A parameter that is added later leaves it as it is."""
        start = plain(read(Start, self.start, "start", complete=True), short=True)
        rounds = [plain(read(Round, entry, "round", complete=True), short=True) for entry in self.rounds[:depth]]
        return digest_of([self.seed, self.env, self.env_options, start, rounds])


def digest_of(parts: Sequence[Any]) -> str:
    """16 hex digits of plain values."""
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=8).hexdigest()


def plan(
    params: Params,
    name: str,
    seeds: int,
    rounds: int,
    arms: Sequence[str] = (),
    start: str = "",
    change: Mapping[str, Any] | None = None,
    env: Mapping[str, Any] | None = None,
) -> list[Job]:
    """The jobs of an experiment, seed by seed so that a partial run compares all arms.

    Args: `arms`: instead of the experiment's; `start` a start of params (default: the first); `change` lies over
    the defaults of every arm (under what makes the arm), `env` over the start's environment. Run seeds are run.seed,
    run.seed + 1, ... Raises ParamError for an unknown experiment, arm or start, and for a wrong `env`.
    """
    if name not in EXPERIMENTS:
        raise ParamError("experiment", name, f"known experiments: {', '.join(EXPERIMENTS)}")
    if unknown := [arm for arm in arms if arm not in ARMS]:
        raise ParamError("arm", unknown[0], f"known arms: {', '.join(ARMS)}")
    start = start or next(iter(params.starts), "")
    if start not in params.starts:
        raise ParamError("start", start, f"declare it in params.yaml; there: {', '.join(params.starts) or 'none'}")
    origin = params.starts[start]
    options = merged(plain(params.envs[origin.env]), env or {})
    options = plain(read(ENVS[origin.env], options, f"envs.{origin.env}"), short=True)
    jobs, change = [], change or {}
    group_size = resolve(params, start, change)["collect"]["group_size"]
    for offset in range(seeds):
        for arm in arms or EXPERIMENTS[name]:
            changes = changes_of(arm, group_size, rounds)
            entries = [resolve(params, start, merged(change, of_arm)) for of_arm in changes]
            jobs.append(
                Job(
                    arm,
                    params.run.seed + offset,
                    origin.env,
                    options,
                    plain(origin),
                    tuple(entries),
                    params.run.threads,
                )
            )
    return jobs


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
        _continue(job, folder, done, on_round or (lambda text: None))
    last = read_json(folder / f"r{len(job.rounds)}.json")["metrics"]
    return f"{job.arm} seed {job.seed}: strict {100 * last['strict']['mean']:.1f}%"


def records(jobs: Sequence[Job], out: Path) -> list[dict[str, Any]]:
    """{"arm", "seed", "depth"} and what is kept (seal.evaluate.results.record) of every finished round of `jobs`."""
    found = []
    for job in jobs:
        for depth in range(_done(job, folder_of(job, out))):
            kept = read_json(folder_of(job, out) / f"r{depth}.json")
            found.append({"arm": job.arm, "seed": job.seed, "depth": depth, **kept})
    return found


def folder_of(job: Job, out: Path) -> Path:
    return out / job.arm / f"s{job.seed}"


def trained_policy(job: Job, out: Path) -> Any:
    """The policy after the last round of a line. The line is run again where it was not kept."""
    from seal.env import load_env
    from seal.policy import load_policy
    from seal.policy.start import start_policy

    folder = folder_of(job, out)
    if _kept(job, folder).get("depth") != len(job.rounds):
        _continue(job, folder, len(job.rounds) + 1, lambda text: None)
    if not (folder / "state" / "policy").exists():  # it has no weights
        return start_policy(job.start["policy"], load_env(job.env, **job.env_options), job.seed)
    return load_policy(folder / "state" / "policy")


def _kept(job: Job, folder: Path) -> dict[str, Any]:
    """line.json of the round whose policy is kept, where that round is one of this job's; else nothing."""
    path = folder / "state" / "line.json"
    kept = read_json(path) if path.exists() else {}
    return kept if kept and kept["digest"] == job.digest(kept["depth"]) else {}


def _done(job: Job, folder: Path) -> int:
    """How many rounds, the start's evaluation included, are there and fit."""
    for depth in range(len(job.rounds) + 1):
        path = folder / f"r{depth}.json"
        if not path.exists() or read_json(path)["digest"] != job.digest(depth):
            return depth
    return len(job.rounds) + 1


def _continue(job: Job, folder: Path, done: int, say: Callable[[str], None]) -> None:
    import torch

    from seal.env import load_env
    from seal.evaluate.rounds import Line, run_round, start_line
    from seal.policy import load_policy
    from seal.policy.start import start_policy

    torch.set_num_threads(job.threads)
    env = load_env(job.env, **job.env_options)
    state, kept = folder / "state", _kept(job, folder)
    resumed = bool(kept) and kept["depth"] >= done - 1
    if resumed and (state / "policy").exists():
        policy = load_policy(state / "policy")
    else:
        policy = start_policy(job.start["policy"], env, job.seed)
    if resumed:
        interface, factors = load_interface(state / "interface.json"), Factors.of_json(kept["factors"])
        replay = replay_of(state / "replay.parquet")
        line = Line(
            policy=policy,
            interface=interface,
            factors=factors,
            replay=replay,
            **{name: kept[name] for name in _OF_LINE},
        )
    else:
        entry = read(Round, job.rounds[0], "round", complete=True)
        line = start_line(env, policy, entry.evaluate, entry.diagnose.priority, job.seed)
    if any(entry["train"].get("reference") == "start" for entry in job.rounds):
        line = replace(line, start=start_policy(job.start["policy"], env, job.seed))
    _write(job, folder, line, kept["pull"] if resumed else {})
    for depth in range(line.depth + 1, len(job.rounds) + 1):
        entry = read(Round, job.rounds[depth - 1], "round", complete=True)
        line, played = run_round(env, line, entry, f"r{depth}", job.seed)
        pulled = pull(played.trained.weights, [*played.collected, *played.trained.fresh])
        _keep(job, state, line, pulled)
        _write(job, folder, line, pulled)
        say(f"{job.arm} seed {job.seed} r{depth}: strict {100 * line.metrics['strict']['mean']:.1f}%")


_OF_LINE = ("round_id", "depth", "profile", "rows", "start_rows", "metrics")


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
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = [[row[name] for name in OUTCOME] for row in line.rows]
    write_json(folder / f"r{line.depth}.json", record(job.digest(line.depth), line.metrics, pulled, outcomes))
