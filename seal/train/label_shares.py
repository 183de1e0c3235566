"""Which labels move the policy: each label's share of the advantage that a round's loss spreads over tokens."""

from collections import Counter
from collections.abc import Iterable

from seal.core.judged import Judged
from seal.train.reweight import TurnWeight


def advantage_shares(weights: Iterable[TurnWeight], judged: Iterable[Judged]) -> dict[str, float]:
    """Primary label -> its share of sum |advantage * weight| * tokens over user turns; the shares add up to 1. Sorted.

    A token's gradient is its advantage times its weight times that of its log probability, so this is the part of
    the gradient that the labels decide; which tokens are surprising is the policy's. Replayed and rehearsed rows are
    left out. A turn counts all the tokens it sampled, also those that are masked in it: of a failed call in a turn that
    was served, and behind interface text.

    Args: `judged` are the rollouts that `weights` are about. Empty where no turn has an advantage.
    """
    sampled: Counter[tuple[str, int]] = Counter()
    label: dict[tuple[str, int], str] = {}
    for j in judged:
        tokens, id_ = j.rollout.tokens, j.rollout.rollout_id
        sampled.update(
            (id_, turn) for turn, is_sampled in zip(tokens.turn_of_token, tokens.loss_mask, strict=True) if is_sampled
        )
        label |= {(id_, d.turn): str(d.label) for d in j.diagnoses if d.primary}
    total: Counter[str] = Counter()
    for row in weights:
        key = row.rollout_id, row.turn
        total[label.get(key, "none")] += abs(row.advantage * row.weight) * sampled[key]
    whole = sum(total.values())
    return {name: round(part / whole, 6) for name, part in sorted(total.items()) if part} if whole else {}
