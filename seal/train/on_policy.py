"""Rollouts of a train step: which tasks, played by the policy as it is, verified and diagnosed."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seal.core.judged import Judged
from seal.core.seeds import RoundKey
from seal.core.types import Credit
from seal.diagnose.judge import judge
from seal.env.base import Environment
from seal.interface.state import InterfaceState
from seal.settings.play import CollectParams
from seal.train.advantage import group_advantages
from seal.train.ranks import gathered, rank


@dataclass(frozen=True, slots=True)
class OnPolicy:
    """Plays and judges the groups of a train step. `interface`: the round's new one; `priority`: of the diagnosis."""

    env: Environment
    interface: InterfaceState
    collect_params: CollectParams
    priority: Sequence[str]
    key: RoundKey

    def __call__(self, policy: Any, step: int, others_than: Sequence[Judged] = (), n: int = 0) -> list[Judged]:
        """The step's groups; with `n`, as many groups of tasks that `others_than` does not hold."""
        from seal.policy.shards import playing
        from seal.rollout.collect import Groups, collect, training_tasks
        from seal.rollout.plan import choose_tasks

        known = {j.rollout.task_id for j in others_than}
        tasks = [task for task in training_tasks(self.env) if not n or task.task_id not in known]
        phase, key = "replace" if n else "train", self.key
        chosen = choose_tasks(tasks, n or self.collect_params.tasks, key.run_seed, key.depth, phase, step)
        policy.model.eval()
        number, world = rank()
        share = chosen[number::world]  # each process plays its share of the groups
        with playing(policy):
            groups = Groups("train", step, share)
            rollouts = collect(self.env, policy, self.interface, self.collect_params, key, groups)
        judged = [j for part in gathered(judge(self.env, rollouts, self.priority)) for j in part]
        order = {task.task_id: i for i, task in enumerate(chosen)}
        return sorted(judged, key=lambda j: order[j.rollout.task_id])


def evolved_per_group(evolved: int, collected: Sequence[Judged], fade: float) -> int:
    """How many rollouts of a group play under the interface while the policy trains.

    All `evolved` while those of the collected groups succeed by `fade` more often than the bare ones beside them; in
    proportion where the gap is smaller, but always one, so that it goes on being seen. As many as there are where
    `fade` is 0, or no group holds both kinds.
    """
    groups: dict[str, tuple[list[bool], list[bool]]] = defaultdict(lambda: ([], []))
    for j in collected:
        if j.usable:
            groups[j.rollout.task_id][j.bare].append(j.success)
    gaps = [sum(cued) / len(cued) - sum(bare) / len(bare) for cued, bare in groups.values() if cued and bare]
    if not fade or not evolved or not gaps:
        return evolved
    return max(1, round(evolved * min(1.0, max(0.0, sum(gaps) / len(gaps) / fade))))


def groups_without_signal(judged: Sequence[Judged], credit: Credit = "rollout") -> int:
    """How many groups have nothing to compare by `credit`."""
    usable = [j for j in judged if j.usable]
    found = group_advantages([j.outcome(credit) for j in usable], [j.rollout.task_id for j in usable])
    return found.all_pass + found.all_fail
