"""The verdicts of a rollout, by the rule of its environment, and its outcome: the only source of reward."""

from collections.abc import Sequence

from seal.core.types import Rollout, Task, Verdict
from seal.env.base import Environment
from seal.verify.turns import verify


def verify_rollout(env: Environment, task: Task, rollout: Rollout) -> list[Verdict]:
    """A verdict for every user turn: against the gold program, where the environment has no rule of its own."""
    found = env.verdicts(task, rollout)
    return verify(env, task, rollout.calls_by_turn(len(task.turns))) if found is None else found


def success(task: Task, verdicts: Sequence[Verdict], rollout: Rollout) -> bool:
    """Every turn valid and every turn reached: an episode that ended early leaves later turns unserved."""
    return rollout.turns_reached == len(task.turns) and all(verdict.valid for verdict in verdicts)


def progress(task: Task, verdicts: Sequence[Verdict]) -> float:
    """Share of valid user turns, in [0, 1]."""
    return sum(verdict.valid for verdict in verdicts) / len(task.turns)
