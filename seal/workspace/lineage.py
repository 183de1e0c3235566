"""The tree of rounds: who descends from whom, how deep, where files lie, and what a round scored."""

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seal.core.errors import RoundError, mended_by
from seal.settings.params import Params, check_trains
from seal.settings.rounds import Round, Start
from seal.store.files import NUMBER, read_json

STAGES = ("collect", "verify", "diagnose", "evolve_interface", "train", "evaluate")  # of a round, in order
START_STAGES = ("start", "evaluate_start")


def path_of(root: Path, round_id: str, what: str) -> Path:
    """The one place that knows the layout: `what` is a folder or file of a round, such as `collect`."""
    return root / "data" / "rounds" / round_id / what


def tasks_path(root: Path, env: str) -> Path:
    """The task table of an environment."""
    return root / "data" / "tasks" / f"{env}.parquet"


def find_root(start: Path | None = None) -> Path:
    """The workspace that holds `start` (default: the current folder). Raises RoundError outside of any."""
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / "params.yaml").is_file() and (folder / "dvc.yaml").is_file():
            return folder
    raise RoundError("workspace", here, "go to the folder that holds params.yaml and dvc.yaml")


@dataclass(frozen=True)
class Lineage:
    """The tree that `params` declares (already checked: parents exist, no cycles)."""

    params: Params

    def entry(self, round_id: str) -> Round | Start:
        """A round's or a start's parameters. Raises RoundError for an unknown id, naming the nearest known ones."""
        known = {**self.params.starts, **self.params.rounds}
        if round_id not in known:
            near = difflib.get_close_matches(round_id, known, n=2, cutoff=0.5)
            remedy = f"did you mean {' or '.join(near)}?" if near else f"known rounds: {', '.join(known) or 'none'}"
            raise RoundError("round", round_id, f"it is not in params.yaml; {remedy}")
        return known[round_id]

    def round(self, round_id: str) -> Round:
        """As `entry`, for rounds alone."""
        entry = self.entry(round_id)
        if isinstance(entry, Start):
            raise RoundError("round", round_id, f"it is a start; rounds: {', '.join(self.params.rounds) or 'none'}")
        return entry

    def parent(self, round_id: str) -> str:
        """The parent's id; "" for a start."""
        entry = self.entry(round_id)
        return entry.parent if isinstance(entry, Round) else ""

    def line(self, round_id: str) -> tuple[str, ...]:
        """From the start to the round, both included."""
        line = [round_id]
        while parent := self.parent(line[-1]):
            line.append(parent)
        return tuple(reversed(line))

    def start(self, round_id: str) -> str:
        """The start a round descends from."""
        return self.line(round_id)[0]

    def check_trains(self, round_id: str) -> None:
        """Raise ParamError for a round that updates a policy which has no weights to train."""
        check_trains(f"rounds.{round_id}", self.entry(self.start(round_id)).policy, self.round(round_id).train)

    def depth(self, round_id: str) -> int:
        """0 for a start, 1 for its children. Seeds depend on it, so an unchanged branch equals its sibling."""
        return len(self.line(round_id)) - 1

    def children(self, round_id: str) -> tuple[str, ...]:
        """In the order of the file."""
        return tuple(name for name, entry in self.params.rounds.items() if entry.parent == round_id)

    def leaves(self) -> tuple[str, ...]:
        """Starts and rounds without children, in the order of the file."""
        return tuple(name for name in (*self.params.starts, *self.params.rounds) if not self.children(name))

    def walk(self, round_id: str | None = None) -> Iterator[tuple[str, int]]:
        """(id, depth) of a subtree (default: of every start's), parents before children."""
        for root in (round_id,) if round_id else tuple(self.params.starts):
            yield root, self.depth(root)
            for child in self.children(root):
                yield from self.walk(child)


def diagnosed_rounds(root: Path, rounds: Iterable[str]) -> list[str]:
    """Those of `rounds` whose collected rollouts have been diagnosed, whether or not their tables are whole."""
    return [name for name in rounds if path_of(root, name, "diagnose").is_dir()]


def read_metrics(root: Path, round_id: str) -> dict[str, Any] | None:
    """metrics.json of a round, checked as far as everyone reads it; None when the round has not been evaluated.

    Raises ArtifactError for a broken or lost file.
    """
    path = path_of(root, round_id, "metrics.json")
    if not path.exists() and not path_of(root, round_id, "evaluate").is_dir():
        return None
    with mended_by(f"take it from git again: git checkout -- {path}; or run the round again"):
        return read_json(path, {"strict": dict.fromkeys(("mean", "low", "high"), NUMBER)})
