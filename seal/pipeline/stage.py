"""One run of a pipeline stage: its entry of params.yaml, its paths, and what it reads of a round."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from seal.core.errors import REMAKE, ArtifactError
from seal.core.judged import Judged
from seal.core.types import Rollout, Task
from seal.env import env_of
from seal.env.base import Environment
from seal.interface.state import InterfaceState, load_interface
from seal.policy import load_policy, policy_info
from seal.rollout.play_cache import PlayCache
from seal.store.files import read_json, tree_hash
from seal.store.judged import read_judged
from seal.store.tables import rollouts_of
from seal.workspace.lineage import Lineage, path_of


@dataclass(frozen=True)
class Stage:
    """One run of a stage for one round or start, `id`."""

    root: Path
    lineage: Lineage
    id: str

    @cached_property
    def entry(self) -> Any:
        """The round's (or the start's) parameters."""
        return self.lineage.entry(self.id)

    @property
    def parent(self) -> str:
        return self.lineage.parent(self.id)

    @property
    def depth(self) -> int:
        return self.lineage.depth(self.id)

    @property
    def seed(self) -> int:
        return self.lineage.params.run.seed

    @cached_property
    def env(self) -> Environment:
        return env_of(self.lineage.params, self.entry.env)

    @cached_property
    def tasks(self) -> dict[str, Task]:
        """The environment's tasks by their ids."""
        return {task.task_id: task for task in self.env.tasks()}

    def path(self, what: str, round_id: str = "") -> Path:
        return path_of(self.root, round_id or self.id, what)

    def policy(self, round_id: str, plays: bool = True) -> Any:
        """A round's policy. One that need not play is only looked at."""
        return (load_policy if plays else policy_info)(self.path("policy", round_id))

    def interface(self, round_id: str) -> InterfaceState:
        return load_interface(self.path("interface.json", round_id))

    @property
    def priority(self) -> Sequence[str]:
        """The order of labels: the round's own, or what its diagnose stage drew from the collected rollouts."""
        setting = self.entry.diagnose.priority
        return read_json(self.path("diagnose") / "priority.json") if isinstance(setting, str) else setting

    def rollouts(self) -> list[Rollout]:
        """The round's collected rollouts. Raises ArtifactError for one of a task that there is not."""
        return self._of_tasks(rollouts_of(self.path("collect")))

    def judged(self) -> list[Judged]:
        """The same with their verdicts, outcomes and diagnoses."""
        found = read_judged(self.path("collect"), self.path("verify"), self.path("diagnose"))
        self._of_tasks([j.rollout for j in found])
        return found

    def _of_tasks(self, rollouts: list[Rollout]) -> list[Rollout]:
        if unknown := sorted({rollout.task_id for rollout in rollouts} - self.tasks.keys()):
            told = f"{self.path('collect') / 'trajectories.parquet'}: {self.entry.env} has no task {unknown[0]}"
            raise ArtifactError("table", told, REMAKE)
        return rollouts

    def resume_dir(self, *inputs: Path) -> Path:
        """An ignored folder for the state of an interrupted run, which belongs to these inputs and parameters alone.

        The stage forgets it once its outputs stand.
        """
        parts = (self.id, self.seed, self.entry, *map(tree_hash, inputs))
        digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()
        return self.root / ".seal" / "resume" / digest

    def log(self, round_id: str) -> PlayCache:
        """Where what a round's policy plays under its interface is kept until then."""
        return PlayCache(self.resume_dir(*(self.path(what, round_id) for what in ("policy", "interface.json"))))
