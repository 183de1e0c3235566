"""The verdicts of a rollout, by the rule of its environment."""

from seal.core.types import Rollout, Task, Verdict
from seal.env.base import Environment
from seal.verify.turns import verify


def verify_rollout(env: Environment, task: Task, rollout: Rollout) -> list[Verdict]:
    """A verdict for every user turn: tau2's conversations by the official reward, all else against the gold program."""
    if env.name == "tau2":
        from seal.verify.tau2 import verify_conversation

        return verify_conversation(env, task, rollout)
    return verify(env, task, rollout.calls_by_turn(len(task.turns)))
