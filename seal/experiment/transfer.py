"""What a run's trained policy does where it was not trained: held-out tasks of other environments, bare docs.

Beside a run's records (see seal.experiment.runs) lies one file a destination, `to-<env>.r<k>.json`, for the start
(k 0) and the last round, keyed like a record and by what it is measured on.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from seal.core.seeds import RoundKey
from seal.env import load_env
from seal.experiment.jobs import Job, digest_of, folder_of
from seal.experiment.results import RECORD, as_outcomes
from seal.experiment.runs import each, run_job, trained_policy
from seal.experiment.starts import policy_of_start
from seal.experiment.summary import compare, outcomes
from seal.pipeline.phases import evaluate_start
from seal.pipeline.state import Checkpoint, RoundState
from seal.settings.params import Params
from seal.settings.rounds import Round
from seal.settings.typed import plain, read
from seal.store.files import read_record, write_json

_RECORD = {name: RECORD[name] for name in ("digest", "outcomes")}


@dataclass(frozen=True, slots=True)
class Place:
    """A destination: an environment with its options (plain values)."""

    env: str
    options: Mapping[str, Any]


def place_of(params: Params, name: str, kind: str = "") -> Place:
    """`name` as in `envs` of params, else an environment with its defaults.

    Raises ParamError for an unknown one, and for one that a policy of this `kind` cannot read.
    """
    options = plain(params.envs[name], short=True) if name in params.envs else {}
    env = load_env(name, **options)
    if kind == "nano":
        from seal.policy.nano import check_reads

        check_reads(env)
    return Place(name, options)


def run_transfer(
    jobs: Sequence[Job],
    out: Path,
    places: Sequence[Place],
    workers: int = 1,
    on_done: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """Run what is missing of each job and measure it on `places`.

    Returns {"arm", "seed", "depth", "to", "outcomes"} (see OUTCOME) of every job at the start and after its last round,
    at home (to "") and on each place.
    """
    work = partial(_transfer, out=out, places=tuple(places))
    each(work, jobs, workers, on_done or (lambda text: None))
    found = []
    for job in jobs:
        for depth in (0, len(job.rounds)):
            key = {"arm": job.arm, "seed": job.seed, "depth": depth}
            home = read_record(folder_of(job, out) / f"r{depth}.json", RECORD)
            found.append({**key, "to": "", "outcomes": home["outcomes"]})
            for place in places:
                there = read_record(_path(out, job, place, depth), _RECORD)
                found.append({**key, "to": place.env, "outcomes": there["outcomes"]})
    return found


def summarise_transfer(
    found: Sequence[Mapping[str, Any]], scenarios: Mapping[str, Mapping[str, str]], split: str
) -> list[dict[str, Any]]:
    """A row per (to, arm): strict at the start and after the last round, gain and margin as in an experiment's summary.

    `scenarios`: per destination ("": home) task -> scenario.
    """
    places, arms = (list(dict.fromkeys(f[name] for f in found)) for name in ("to", "arm"))
    last = max(f["depth"] for f in found)

    rows = []
    for to in places:
        there = [f for f in found if f["to"] == to]
        first = outcomes(there, arms[0], last, split)
        for arm in arms:
            start, after = outcomes(there, arm, 0, split), outcomes(there, arm, last, split)
            seeds = len({seed for seed, *_ in after})
            row = {"to": to, "arm": arm, "seeds": seeds, "rounds": last}
            rows.append(
                row | compare(scenarios[to], start=start, strict=after, gain=(after, start), margin=(after, first))
            )
    return rows


def _transfer(job: Job, out: Path, places: Sequence[Place]) -> str:
    import torch

    torch.set_num_threads(job.threads)
    told = run_job(job, out)
    for place in places:
        for depth in (0, len(job.rounds)):
            path = _path(out, job, place, depth)
            digest = _digest(job, place, depth)
            if not path.exists() or read_record(path, _RECORD)["digest"] != digest:
                write_json(path, {"digest": digest, "outcomes": _measure(job, out, place, depth)})
    return f"{told}, measured on {', '.join(place.env for place in places)}"


def _measure(job: Job, out: Path, place: Place, depth: int) -> list[list[Any]]:
    entry = read(Round, job.rounds[0], "round", complete=True)
    env, key = load_env(place.env, **place.options), RoundKey(f"r{depth}", depth, job.seed)
    policy = trained_policy(job, out) if depth else policy_of_start(job, out)
    state = RoundState(key, env, Checkpoint(""), policy=policy, priority=entry.diagnose.priority)
    return as_outcomes(evaluate_start(state, entry.evaluate).evaluation.rows(key.id))


def _digest(job: Job, place: Place, depth: int) -> str:
    return digest_of([job.digest(depth), place.env, place.options, job.rounds[0]["evaluate"]])


def _path(out: Path, job: Job, place: Place, depth: int) -> Path:
    return folder_of(job, out) / f"to-{place.env.replace(':', '-')}.r{depth}.json"
