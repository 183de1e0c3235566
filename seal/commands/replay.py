"""`seal replay <round>`: run a round again from its inputs, in a clean copy of the commit, and compare every hash."""

import argparse
import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seal.core.errors import PLAY, RoundError
from seal.settings.params import load_params
from seal.settings.rounds import Round
from seal.workspace.dvc import environment, repro
from seal.workspace.lineage import STAGES, START_STAGES, Lineage, find_root, path_of
from seal.workspace.lock import recorded


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("round", help="a finished round or start")


def run(args: argparse.Namespace) -> int:
    root = find_root()
    lineage = Lineage(load_params(root / "params.yaml"))
    lineage.entry(args.round)
    stages = STAGES if lineage.depth(args.round) else START_STAGES
    targets = [f"{stage}@{args.round}" for stage in stages]
    before = locked(root, targets)
    _refuse_uncommitted(root)
    metrics = path_of(Path(), args.round, "metrics.json").as_posix()
    with _clean_copy(root) as copy:
        _inputs(root, copy, targets, unlisted(lineage, args.round))
        repro(copy, targets, ("-f", "--no-run-cache"))
        after = locked(copy, targets)
        differing = sorted(path for path in before if before[path] != after.get(path))
    if not differing:
        print(f"EXACT: {args.round}, {len(before)} outputs ({metrics} among them)")
        return 0
    for path in differing:
        print(f"DIFFERS: {path}  {before[path]} -> {after.get(path)}")
    return 1


def locked(root: Path, targets: list[str]) -> dict[str, str]:
    """Path -> hash of every output of these stages in dvc.lock. Raises RoundError when one has not been run."""
    lock = recorded(root)
    try:
        return {out["path"]: out["md5"] for target in targets for out in lock[target]["outs"]}
    except KeyError:
        missing = ", ".join(targets)
        raise RoundError("dvc.lock", f"without some of {missing}", "run the round first: seal run") from None


def _refuse_uncommitted(root: Path) -> None:
    """What is replayed is what the commit says, so the workspace must say the same."""
    changed = _git(root, "status", "--porcelain", "--", "params.yaml", "dvc.lock", "dvc.yaml").strip()
    if changed:
        names = ", ".join(line.split()[-1] for line in changed.splitlines())
        raise RoundError("uncommitted", names, f"commit first: git add {names.replace(',', '')} && git commit")


@contextmanager
def _clean_copy(root: Path) -> Iterator[Path]:
    """A checkout of HEAD in a temporary folder, with the workspace's DVC cache."""
    prefix = _git(root, "rev-parse", "--show-prefix").strip()
    with tempfile.TemporaryDirectory(prefix="seal-replay-") as folder:
        _git(root, "worktree", "add", "--detach", "--quiet", f"{folder}/tree", "HEAD")
        try:
            copy = Path(folder, "tree", prefix)
            _dvc(copy, "cache", "dir", "--local", _dvc(root, "cache", "dir").strip())
            yield copy
        finally:
            _git(root, "worktree", "remove", "--force", f"{folder}/tree")


def unlisted(lineage: Lineage, round_id: str) -> set[str]:
    """Paths that a round's stages read and do not depend on: the start's policy, since the parent's depends on it."""
    entry = lineage.entry(round_id)
    asked = isinstance(entry, Round) and entry.train.reference == "start"
    return {path_of(Path(), lineage.start(round_id), "policy").as_posix()} if asked else set()


def _inputs(root: Path, copy: Path, targets: list[str], more: set[str]) -> None:
    """Bring the files these stages read into the copy, `more` among them: outputs of other stages, by their hashes in
    dvc.lock.

    Metrics are not in the cache; one that is not committed is taken from the workspace if it is the right one.
    """
    lock = recorded(root)
    made = {out["path"] for target in targets for out in lock[target]["outs"]}
    wanted = {dep["path"]: dep.get("md5") for target in targets for dep in lock[target]["deps"]}
    missing = sorted(path for path in {*wanted, *more} if path not in made and not (copy / path).exists())
    for path in (path for path in missing if path.endswith("metrics.json")):
        content = (root / path).read_bytes() if (root / path).exists() else b""
        if hashlib.md5(content, usedforsecurity=False).hexdigest() != wanted[path]:
            raise RoundError("metrics", path, "it is not the one of dvc.lock: git checkout it, or seal run")
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_bytes(content)
    if cached := [path for path in missing if not path.endswith("metrics.json")]:
        try:
            _dvc(copy, "checkout", "--quiet", *cached)
        except RoundError as error:  # which does not say of what
            lost = ", ".join([path for path in cached if not (copy / path).exists()] or cached)
            raise RoundError("inputs of the replay", f"DVC has not checked out {lost}: {error.value}", PLAY) from None


def _git(root: Path, *words: str) -> str:
    return _call(root, "git", *words)


def _dvc(root: Path, *words: str) -> str:
    return _call(root, sys.executable, "-m", "dvc", *words)


def _call(root: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=root, env=environment(root), capture_output=True, text=True, check=False)
    if done.returncode:
        tail = [line for line in done.stderr.splitlines() if line.strip() and "dvc.org/support" not in line][-3:]
        said = "\n".join(tail) or f"exit code {done.returncode}"
        raise RoundError(" ".join(command[-4:]), said, "a replay needs git, and inputs in the DVC cache: seal run")
    return done.stdout
