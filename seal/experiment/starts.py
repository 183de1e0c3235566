"""What a line of rounds begins with, made once for all arms of a seed: a policy, and its score.

Under the output folder of an experiment: `starts/<key>/policy/` and `starts/<key>/start.json`. Of several processes one
makes it and the others wait; one that was killed goes on where it was.
"""

from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from seal.core.errors import mended_by
from seal.env import load_env
from seal.experiment.jobs import Job, digest_of
from seal.experiment.results import RECORD, as_outcomes, as_rows
from seal.pipeline.rounds import Line, start_line
from seal.policy import load_policy
from seal.policy.base import Policy
from seal.policy.start import write_start
from seal.rollout.play_cache import PlayCache
from seal.settings.rounds import Round, Start
from seal.settings.typed import plain, read
from seal.store.files import atomic_dir, forget, new_folder, read_record, write_json


def policy_of_start(job: Job, out: Path) -> Policy:
    """The policy before the first round. Each call loads it anew: rounds train it in place."""
    start = plain(read(Start, job.start, "start", complete=True), short=True)
    folder = _folder(out, [job.seed, job.env, job.env_options, start["policy"]])

    def make() -> None:
        with atomic_dir(folder / "policy") as made:
            env = load_env(job.env, **job.env_options)
            write_start(job.start["policy"], env, made, job.seed, resume_dir=folder / "warm")

    _once(folder / "policy", make)
    with mended_by(f"remove the folder, it is made again: rm -r {folder}"):
        return load_policy(folder / "policy")


def line_of_start(job: Job, out: Path) -> Line:
    """Depth 0: the start's policy and its evaluation, as the first round would evaluate."""
    entry, policy = read(Round, job.rounds[0], "round", complete=True), policy_of_start(job, out)
    how = [plain(entry.evaluate, short=True), entry.diagnose.priority]
    folder = _folder(out, [job.seed, job.env, job.env_options, policy.hash, how])
    path = folder / "start.json"

    def make() -> None:
        env = load_env(job.env, **job.env_options)
        log = PlayCache(folder / "played")
        line = start_line(env, policy, entry.evaluate, entry.diagnose.priority, job.seed, log=log)
        write_json(path, {"metrics": line.metrics, "outcomes": as_outcomes(line.rows)})
        forget(log.folder)

    _once(path, make)
    kept = read_record(path, {name: RECORD[name] for name in ("metrics", "outcomes")})
    rows = as_rows(kept["outcomes"])
    return Line("r0", 0, policy, rows=rows, start_rows=rows, metrics=kept["metrics"])


def _once(path: Path, make: Callable[[], None]) -> None:
    """Make what is to stand at `path`, unless it does, or another process makes it meanwhile."""
    if not path.exists():
        with FileLock(f"{path.parent}.lock"):
            if not path.exists():
                make()


def _folder(out: Path, parts: list) -> Path:
    return new_folder(out / "starts" / digest_of(parts))
