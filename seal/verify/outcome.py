"""The outcome of a rollout from its verdicts: the only source of reward."""

from collections.abc import Sequence

from seal.core.types import Rollout, Task, Verdict


def turns_reached(rollout: Rollout) -> int:
    """User turns in which the policy (or the gold prefix) said something."""
    return max((step.turn for step in rollout.steps), default=-1) + 1


def success(task: Task, verdicts: Sequence[Verdict], rollout: Rollout) -> bool:
    """Every turn valid and every turn reached: an episode that ended early leaves later turns unserved."""
    return turns_reached(rollout) == len(task.turns) and all(verdict.valid for verdict in verdicts)


def progress(task: Task, verdicts: Sequence[Verdict]) -> float:
    """Share of valid user turns, in [0, 1]."""
    return sum(verdict.valid for verdict in verdicts) / len(task.turns)
