"""Group-relative advantage from the verifier's outcome alone. Diagnosis never enters here."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

ZeroVariance = Literal["mask", "keep"]


@dataclass(frozen=True, slots=True)
class Advantages:
    """values (N,) float64; trained (N,) bool, False in a masked group; the groups counted by their raw outcomes."""

    values: np.ndarray
    trained: np.ndarray
    all_pass: int
    all_fail: int
    mixed: int


def group_advantages(
    outcomes: Sequence[float], groups: Sequence[Hashable], zero_variance: ZeroVariance = "mask"
) -> Advantages:
    """(r - mean) / (std + 1e-4) within each group, std with one degree of freedom less (as TRL has it).

    A group whose raw outcomes are all equal (a group of one, too) has no signal: its advantages are exactly 0. "mask"
    takes its tokens out of the loss, "keep" leaves them in the token count that the loss is divided by.

    Args: outcomes (N,) in [0, 1]; groups (N,), rollouts with equal keys share a baseline, wherever they stand.
    """
    rewards = np.asarray(outcomes, dtype=np.float64)
    values, trained = np.zeros(len(rewards)), np.ones(len(rewards), dtype=bool)
    members: dict[Hashable, list[int]] = {}
    for i, group in enumerate(groups):
        members.setdefault(group, []).append(i)
    counts = {"all_pass": 0, "all_fail": 0, "mixed": 0}
    for index in members.values():
        r = rewards[index]
        if (r == r[0]).all():
            counts["all_pass" if r[0] >= 1.0 else "all_fail"] += 1
            trained[index] = zero_variance == "keep"
        else:
            counts["mixed"] += 1
            values[index] = (r - r.mean()) / (r.std(ddof=1) + 1e-4)
    return Advantages(values, trained, **counts)
