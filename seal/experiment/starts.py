"""What a line of rounds begins with, made once for all arms of a seed: a policy, and its score.

Under the output folder of an experiment: `starts/<key>/policy/`, and under another key its evaluation, both as the
folder of a round has them (seal.pipeline.folder). Of several processes one makes it and the others wait; one that was
killed goes on where it was.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from filelock import FileLock

from seal.core.errors import mended_by
from seal.core.seeds import RoundKey
from seal.env import load_env
from seal.experiment.jobs import Job, digest_of
from seal.pipeline.folder import RoundFolder
from seal.pipeline.phases import Run, evaluate_start
from seal.pipeline.state import Checkpoint, RoundState
from seal.policy import load_policy
from seal.policy.base import Policy
from seal.policy.start import write_start
from seal.settings.rounds import Round, Start
from seal.settings.typed import plain, read
from seal.store.files import atomic_dir, forget, new_folder

START = "r0"  # the id of every start


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


def checkpoint_of_start(job: Job, out: Path) -> Checkpoint:
    """Depth 0: the start's policy and its evaluation, as the first round would evaluate."""
    entry, policy = read(Round, job.rounds[0], "round", complete=True), policy_of_start(job, out)
    how = [plain(entry.evaluate, short=True), entry.diagnose.priority]
    folder = _folder(out, [job.seed, job.env, job.env_options, policy.hash, how]) / "start"

    def make() -> None:
        env, played = load_env(job.env, **job.env_options), folder.with_name("played")
        key, priority = RoundKey(START, 0, job.seed), entry.diagnose.priority
        state = RoundState(key, env, Checkpoint(""), policy=policy, priority=priority)
        state = evaluate_start(state, entry.evaluate, Run(resume_dir=played))
        with atomic_dir(folder) as made:
            RoundFolder(made, START).write_checkpoint(replace(state.checkpoint(), policy=None))
        forget(played)

    _once(folder, make)
    with mended_by(f"remove the folder, it is made again: rm -r {folder}"):
        return RoundFolder(folder, START).checkpoint(policy=policy)


def _once(path: Path, make: Callable[[], None]) -> None:
    """Make what is to stand at `path`, unless it does, or another process makes it meanwhile."""
    if not path.exists():
        with FileLock(f"{path.parent}.lock"):
            if not path.exists():
                make()


def _folder(out: Path, parts: list) -> Path:
    return new_folder(out / "starts" / digest_of(parts))
