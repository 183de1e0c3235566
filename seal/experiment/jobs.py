"""The lines of rounds of an experiment as data: which arm, which seed, which parameters."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seal.core.errors import ParamError
from seal.experiment.arms import ARMS, EXPERIMENTS, changes_of
from seal.settings.envs import ENVS
from seal.settings.params import Params, check_round, check_trains
from seal.settings.rounds import Round, Start
from seal.settings.typed import plain, read
from seal.workspace.params_file import merged, resolve


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
    wanted: str | Sequence[str],
    seeds: int,
    rounds: int,
    start: str | None = None,
    change: Mapping[str, Any] | None = None,
    env: Mapping[str, Any] | None = None,
) -> list[Job]:
    """The jobs of an experiment, seed by seed so that a partial run compares all arms.

    Args: `wanted`: an experiment, by its name, or the arms themselves; `start` a start of params (default: the first);
    `change` lies over the defaults of every arm (under what makes the arm), `env` over the start's environment. Run
    seeds are run.seed, run.seed + 1, ... Raises ParamError for an unknown experiment, arm or start, and for a wrong
    `env`.
    """
    if isinstance(wanted, str) and wanted not in EXPERIMENTS:
        raise ParamError("experiment", wanted, f"known experiments: {', '.join(EXPERIMENTS)}")
    arms = EXPERIMENTS[wanted] if isinstance(wanted, str) else wanted
    if unknown := [arm for arm in arms if arm not in ARMS]:
        raise ParamError("arm", unknown[0], f"known arms: {', '.join(ARMS)}")
    start = next(iter(params.starts), "") if start is None else start
    if start not in params.starts:
        raise ParamError(
            "start", start or "empty", f"declare it in params.yaml; there: {', '.join(params.starts) or 'none'}"
        )
    origin = params.starts[start]
    options = merged(plain(params.envs[origin.env]), env or {})
    options = plain(read(ENVS[origin.env], options, f"envs.{origin.env}"), short=True)
    jobs, change = [], change or {}
    group_size = resolve(params, start, change)["collect"]["group_size"]
    for offset in range(seeds):
        for arm in arms:
            changes = changes_of(arm, group_size, rounds, origin.policy["kind"])
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


def check_jobs(jobs: Sequence[Job]) -> None:
    """Raise ParamError for a round whose parameters do not fit each other, or its start's policy: before any is run."""
    for job in {job.arm: job for job in jobs}.values():
        for entry in (read(Round, entry, "rounds.new") for entry in job.rounds):
            check_round("rounds.new", entry)
            check_trains("rounds.new", job.start["policy"], entry.train)


def folder_of(job: Job, out: Path) -> Path:
    return out / job.arm / f"s{job.seed}"
