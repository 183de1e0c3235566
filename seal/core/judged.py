"""A rollout with everything the verifier and the diagnosis say about it: what training reads."""

from collections.abc import Sequence
from dataclasses import dataclass

from seal.core.labels import NOT_THE_POLICY
from seal.core.types import Credit, Diagnosis, Rollout, Verdict


@dataclass(frozen=True, slots=True)
class Judged:
    """One played, verified and diagnosed rollout. Its group (one baseline) is its task."""

    rollout: Rollout
    verdicts: tuple[Verdict, ...]
    diagnoses: tuple[Diagnosis, ...]
    success: bool
    progress: float

    @property
    def usable(self) -> bool:
        """False when something other than the policy failed: such a rollout counts nowhere."""
        faults = any(diagnosis.label in NOT_THE_POLICY for diagnosis in self.diagnoses)
        return not faults and self.rollout.stop_reason != "env_error"

    @property
    def bare(self) -> bool:
        return self.rollout.mode == "off"

    def primary(self, turn: int) -> Diagnosis | None:
        """The one label a turn is known by, if it was diagnosed."""
        return next((d for d in self.diagnoses if d.turn == turn and d.primary), None)

    def valid(self, turn: int) -> bool:
        return any(verdict.turn == turn and verdict.valid for verdict in self.verdicts)

    @property
    def passed(self) -> tuple[bool, ...]:
        """For each user turn the rollout reached in a right state: was it served? False only at the last place.

        A turn is served when it is valid and the rollout went on to the next one, or it is the task's last.
        """
        served: list[bool] = []
        reached = self.rollout.turns_reached
        for turn, verdict in enumerate(self.verdicts[:reached]):
            served.append(verdict.valid and (turn + 1 < reached or turn + 1 == len(self.verdicts)))
            if not served[-1]:
                break
        return tuple(served)

    def outcome(self, credit: Credit) -> float:
        """What tells the rollouts of a group apart: its success, or, where turns are compared, the share of the task's
        turns that it served before it failed. Equal in a group without signal, and 1 where there is nothing to mend.
        """
        if credit == "rollout":
            return float(self.success)
        return sum(self.passed) / len(self.verdicts) if self.verdicts else 0.0

    @property
    def failed_calls(self) -> frozenset[int]:
        """Places in rollout.steps of what failed in a turn that was served: the turn's reward is not theirs."""
        passed = (True,) * len(self.verdicts) if self.success else self.passed
        served = {turn for turn, valid in enumerate(passed) if valid}
        return frozenset(
            i
            for i, step in enumerate(self.rollout.steps)
            if step.turn in served and (step.errors or any(result.error_kind for result in step.results))
        )

    def had_error(self, turn: int) -> bool:
        """Whether the policy was shown an error in this turn (of a call, or that it wrote none)."""
        steps = (step for step in self.rollout.steps if step.turn == turn)
        return any(step.errors or any(result.error_kind for result in step.results) for step in steps)


def bare_or_all(judged: Sequence[Judged]) -> list[Judged]:
    """The bare rollouts; all of them where none is bare."""
    return [j for j in judged if j.bare] or list(judged)
