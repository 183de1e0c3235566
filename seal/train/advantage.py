"""Group-relative advantage from the verifier's outcome alone. Diagnosis never enters here."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

ZeroVariance = Literal["mask", "keep", "resample"]


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
    takes its tokens out of the loss (so does "resample", for those it was replaced by stand beside it), "keep" leaves
    them in the token count that the loss is divided by.

    Args: outcomes (N,) in [0, 1]; groups (N,), rollouts with equal keys share a baseline, wherever they stand.
    """
    raw = np.asarray(outcomes, dtype=np.float64)
    values, trained = np.zeros(len(raw)), np.ones(len(raw), dtype=bool)
    members: dict[Hashable, list[int]] = {}
    for i, group in enumerate(groups):
        members.setdefault(group, []).append(i)
    counts = {"all_pass": 0, "all_fail": 0, "mixed": 0}
    for index in members.values():
        r = raw[index]
        if (r == r[0]).all():
            counts["all_pass" if r[0] >= 1.0 else "all_fail"] += 1
            trained[index] = zero_variance == "keep"
        else:
            counts["mixed"] += 1
            values[index] = (r - r.mean()) / (r.std(ddof=1) + 1e-4)
    return Advantages(values, trained, **counts)


def turn_advantages(passed: Sequence[Sequence[bool]], groups: Sequence[Hashable]) -> list[dict[int, float]]:
    """For each rollout, turn -> advantage: those of a group that reached a turn in a right state are compared by
    whether they served it. A turn that all of them served, or none, has no signal and is left out, as is what follows
    a failure.

    Args: passed (N, turns reached in a right state), each row True but perhaps at its end; groups (N,).
    """
    places = [(i, turn) for i, row in enumerate(passed) for turn in range(len(row))]
    found = group_advantages([float(passed[i][t]) for i, t in places], [(groups[i], t) for i, t in places])
    advantages: list[dict[int, float]] = [{} for _ in passed]
    for (i, turn), value, trained in zip(places, found.values, found.trained, strict=True):
        if trained:
            advantages[i][turn] = float(value)
    return advantages
