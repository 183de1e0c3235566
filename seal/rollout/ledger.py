"""Token bookkeeping of one rollout: append-only, in two forms, never re-tokenised.

*Shown* is what the policy read and sampled. *Bare* is the same rollout as it would look under interface off. The
sampled ids are common to both; the environment's segments may differ.
"""

from collections.abc import Sequence
from dataclasses import fields

from seal.core.types import Tokens


class Ledger:
    """`context` is the shown form so far: what the policy is to continue."""

    def __init__(self) -> None:
        self.context: list[int] = []
        self._columns: dict[str, list] = {field.name: [] for field in fields(Tokens)}
        self._recovery_shown = False

    def add_shown(self, shown: Sequence[int], bare: Sequence[int], turn: int, recovery: bool = False) -> None:
        """The environment wrote a segment. `recovery`: it holds interface text that docs do not explain."""
        self.context += shown
        self._recovery_shown |= recovery
        if self._columns["completion_ids"]:
            self._append(shown, bare, turn, [0.0] * len(shown), mask=0)
        else:  # nothing was sampled yet
            self._columns["prompt_ids"] += shown
            self._columns["bare_prompt_ids"] += bare

    def add_sampled(self, ids: Sequence[int], logprobs: Sequence[float], turn: int) -> None:
        """The policy sampled a segment."""
        self.context += ids
        self._append(ids, ids, turn, logprobs, mask=1)

    def _append(
        self, shown: Sequence[int], bare: Sequence[int], turn: int, logprobs: Sequence[float], mask: int
    ) -> None:
        self._columns["completion_ids"] += shown
        self._columns["loss_mask"] += [mask] * len(shown)
        self._columns["logprobs"] += logprobs
        self._columns["turn_of_token"] += [turn] * len(shown)
        self._columns["interface_mask"] += [mask and int(self._recovery_shown)] * len(shown)
        self._columns["bare_completion_ids"] += bare
        self._columns["bare_loss_mask"] += [mask] * len(bare)

    def tokens(self) -> Tokens:
        return Tokens(**{name: tuple(values) for name, values in self._columns.items()})
