"""Token bookkeeping of one rollout: append-only, in two forms, never re-tokenised.

*Shown* is what the policy read and sampled. *Bare* is the same rollout as it would look under interface off. The
sampled ids are common to both; the environment's segments may differ.
"""

from collections.abc import Sequence

from seal.core.types import Tokens


class Ledger:
    """`context` is the shown form so far: what the policy is to continue."""

    def __init__(self) -> None:
        self.context: list[int] = []
        self._prompt: dict[str, list[int]] = {"shown": [], "bare": []}
        self._ids: dict[str, list[int]] = {"shown": [], "bare": []}
        self._mask: dict[str, list[int]] = {"shown": [], "bare": []}
        self._logprobs: list[float] = []
        self._turns: list[int] = []
        self._after_recovery: list[int] = []
        self._recovery_shown = False
        self._sampled = 0

    def add_shown(self, shown: Sequence[int], bare: Sequence[int], turn: int, recovery: bool = False) -> None:
        """The environment wrote a segment. `recovery`: it holds interface text that docs do not explain."""
        self.context += shown
        self._recovery_shown |= recovery
        if not self._sampled:
            self._prompt["shown"] += shown
            self._prompt["bare"] += bare
            return
        self._append("shown", shown, 0)
        self._append("bare", bare, 0)
        self._logprobs += [0.0] * len(shown)
        self._turns += [turn] * len(shown)
        self._after_recovery += [0] * len(shown)

    def add_sampled(self, ids: Sequence[int], logprobs: Sequence[float], turn: int) -> None:
        """The policy sampled a segment."""
        self.context += ids
        self._sampled += len(ids)
        self._append("shown", ids, 1)
        self._append("bare", ids, 1)
        self._logprobs += logprobs
        self._turns += [turn] * len(ids)
        self._after_recovery += [int(self._recovery_shown)] * len(ids)

    def _append(self, form: str, ids: Sequence[int], mask: int) -> None:
        self._ids[form] += ids
        self._mask[form] += [mask] * len(ids)

    def tokens(self) -> Tokens:
        return Tokens(
            prompt_ids=tuple(self._prompt["shown"]),
            completion_ids=tuple(self._ids["shown"]),
            loss_mask=tuple(self._mask["shown"]),
            logprobs=tuple(self._logprobs),
            turn_of_token=tuple(self._turns),
            interface_mask=tuple(self._after_recovery),
            bare_prompt_ids=tuple(self._prompt["bare"]),
            bare_completion_ids=tuple(self._ids["bare"]),
            bare_loss_mask=tuple(self._mask["bare"]),
        )
