"""Played rollouts with everything the verifier and the diagnosis say about them."""

from collections.abc import Sequence
from dataclasses import replace

from seal.core.judged import Judged
from seal.core.types import Rollout
from seal.diagnose.diagnosis import diagnose
from seal.env.base import Environment
from seal.verify.rollout import progress, success, verify_rollout


def judge(env: Environment, rollouts: Sequence[Rollout], priority: Sequence[str]) -> list[Judged]:
    """Verify and diagnose rollouts, in their order."""
    return label(env, verified(env, rollouts), priority)


def verified(env: Environment, rollouts: Sequence[Rollout]) -> list[Judged]:
    """Rollouts with their verdicts and outcome, and no labels yet."""
    tasks, judged = {task.task_id: task for task in env.tasks()}, []
    for rollout in rollouts:
        task = tasks[rollout.task_id]
        verdicts = verify_rollout(env, task, rollout)
        judged.append(Judged(rollout, tuple(verdicts), (), success(task, verdicts, rollout), progress(task, verdicts)))
    return judged


def label(env: Environment, judged: Sequence[Judged], priority: Sequence[str]) -> list[Judged]:
    """The same rollouts and verdicts with labels, of which one a turn is primary by `priority`."""
    tasks = {task.task_id: task for task in env.tasks()}
    labels = (diagnose(env, tasks[j.rollout.task_id], j.rollout, j.verdicts, priority) for j in judged)
    return [replace(j, diagnoses=tuple(found)) for j, found in zip(judged, labels, strict=True)]
