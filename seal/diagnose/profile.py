"""The failure profile: how often each label hits each tool and parameter, by category, against the parent's profile.

Counted are root labels of bare rollouts (all rollouts where none is bare), but not symptoms and unsure labels. A turn
that is not the policy's doing, or only a consequence, counts nowhere: neither as a failure nor as a chance to fail.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from seal.core.judged import Judged, bare_or_all
from seal.core.labels import NOT_THE_POLICY
from seal.core.statistics import score_interval
from seal.core.types import Json
from seal.diagnose.primary_label import CERTAIN

Row = Mapping[str, Json]
Key = tuple[str, str, str, str]  # category, tool, parameter, label
EXAMPLES = 3
_turn = attrgetter("turn")


def profile(
    judged: Sequence[Judged], categories: Mapping[str, str], before: Sequence[Row] = ()
) -> list[dict[str, Json]]:
    """Profile rows, sorted by (category, tool, parameter, label).

    Args:
        categories: task_id -> category.
        before: the parent round's profile rows.

    Columns: n (turns with the label), turns (turns of the category that count), rate = n / turns with its Wilson
    interval low, high; n_parent, turns_parent, change of the rate with its Newcombe interval change_low, change_high;
    trend: "up", "down", or "flat" where the interval holds 0 or there is no parent; rollouts: a few ids.
    """
    turns: dict[str, int] = defaultdict(int)
    hits: dict[Key, set[tuple[str, int]]] = defaultdict(set)
    for j in bare_or_all(judged):
        category = categories[j.rollout.task_id]
        for turn, found in groupby(sorted(j.diagnoses, key=_turn), _turn):
            labels = list(found)
            if any(d.label in NOT_THE_POLICY or not d.root for d in labels):
                continue
            turns[category] += 1
            for d in labels:
                if d.primary or d.confidence >= CERTAIN:
                    hits[category, d.tool, d.parameter, str(d.label)].add((j.rollout.rollout_id, turn))
    rows_before = {_key(row): row for row in before}
    turns_before = {row["category"]: row["turns"] for row in before}
    keys = sorted({*hits, *(key for key in rows_before if turns.get(key[0]))})
    return [_row(key, hits[key], turns[key[0]], rows_before.get(key), turns_before.get(key[0], 0)) for key in keys]


def difference(n: int, total: int, n_before: int, total_before: int) -> tuple[float, float, float]:
    """Change of a proportion and its interval (Newcombe 1998, method 10)."""
    p, q = n / total, n_before / total_before
    low, high = score_interval(n, total)
    low_before, high_before = score_interval(n_before, total_before)
    down = math.hypot(p - low, high_before - q)
    up = math.hypot(high - p, q - low_before)
    return p - q, p - q - down, p - q + up


def _key(row: Row) -> Key:
    return row["category"], row["tool"] or "", row["parameter"] or "", str(row["label"])


def _row(key: Key, where: set[tuple[str, int]], total: int, before: Row | None, total_before: int) -> dict[str, Json]:
    n, n_before = len(where), int(before["n"]) if before else 0
    low, high = score_interval(n, total)
    changes = difference(n, total, n_before, total_before) if total_before else (0.0, 0.0, 0.0)
    _, change_low, change_high = changes
    return {
        **dict(zip(("category", "tool", "parameter", "label"), key, strict=True)),
        **{"n": n, "turns": total, "rate": n / total, "low": low, "high": high},
        **{"n_parent": n_before, "turns_parent": total_before},
        **dict(zip(("change", "change_low", "change_high"), changes, strict=True)),
        "trend": "up" if change_low > 0 else "down" if change_high < 0 else "flat",
        "rollouts": sorted({rollout for rollout, _ in where})[:EXAMPLES],
    }
