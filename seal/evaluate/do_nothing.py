"""What a policy that does nothing scores: where that is not nothing, a score says little without it."""

from typing import Any

from seal.core.types import Task
from seal.env.base import Environment
from seal.evaluate.suite import Evaluation


def do_nothing(env: Environment, evaluation: Evaluation, split: str = "test") -> dict[str, Any]:
    """`{"do_nothing": {"mean", "n", "by_category"}}` over the tasks of a split that were played bare, for metrics.json.

    Only tau2 rewards doing nothing; elsewhere a turn with gold calls and no call is never valid, and this is empty.
    """
    played = {h.task.task_id: h.task for h in evaluation.held if (h.split, h.mode) == (split, "off")}
    rewards = {task.task_id: env.do_nothing_reward(task) for task in played.values()}
    if None in rewards.values() or not played:
        return {}
    by_category: dict[str, list[Task]] = {}
    for task in played.values():
        by_category.setdefault(task.category, []).append(task)

    def share(tasks: list[Task]) -> float:
        return round(sum(rewards[task.task_id] for task in tasks) / len(tasks), 6)

    categories = {name: share(by_category[name]) for name in sorted(by_category)}
    return {"do_nothing": {"mean": share(list(played.values())), "n": len(played), "by_category": categories}}
