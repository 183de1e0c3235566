"""Fresh rollouts for a train step: which tasks, played by the policy as it is, verified and diagnosed."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seal.core.judged import Judged
from seal.core.seeds import RoundKey
from seal.diagnose.judge import judge
from seal.env.base import Environment
from seal.interface.state import InterfaceState
from seal.train.advantage import Credit, group_advantages
from seal.train.ranks import gathered, rank


@dataclass(frozen=True, slots=True)
class Fresh:
    """Plays and judges the groups of a train step. `curriculum`, `credit`: see `task_weights`; 0 draws tasks evenly."""

    env: Environment
    policy: Any
    interface: InterfaceState
    collect_params: Any
    priority: Sequence[str]
    round_id: str
    depth: int
    run_seed: int
    curriculum: float = 0.0
    credit: Credit = "rollout"

    def __call__(self, step: int, seen: Sequence[Judged] = (), n: int = 0) -> list[Judged]:
        """The step's groups, their tasks chosen by what `seen` holds; or `n` groups of tasks that `seen` lacks."""
        from seal.policy.shards import playing
        from seal.rollout.collect import Groups, collect, training_tasks
        from seal.rollout.plan import choose_tasks

        tasks, draw = training_tasks(self.env), (self.run_seed, self.depth)
        if n:
            played = {j.rollout.task_id for j in seen}
            left = [task for task in tasks if task.task_id not in played]
            chosen = choose_tasks(left, n, *draw, "replace", step)
        else:
            chosen = choose_tasks(tasks, self.collect_params.tasks, *draw, "train", step)
        self.policy.model.eval()
        key, (number, world) = RoundKey(self.round_id, self.depth, self.run_seed), rank()
        groups = Groups("train", step, chosen[number::world])  # each process plays its share
        with playing(self.policy):
            rollouts = collect(self.env, self.policy, self.interface, self.collect_params, key, groups)
        judged = [j for part in gathered(judge(self.env, rollouts, self.priority)) for j in part]
        order = {task.task_id: i for i, task in enumerate(chosen)}
        return sorted(judged, key=lambda j: order[j.rollout.task_id])


def faded(evolved: int, collected: Sequence[Judged], fade: float) -> int:
    """How many rollouts of a fresh group play under the interface.

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
