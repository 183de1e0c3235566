"""The failure profile: how often each label hits each tool and parameter, by category, against the parent's profile.

Counted are root labels of bare rollouts (all rollouts where none is bare), but not symptoms and unsure labels. A turn
that is not the policy's doing, or only a consequence, counts nowhere: neither as a failure nor as a chance to fail.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from seal.core.labels import NOT_THE_POLICY
from seal.core.types import Json
from seal.diagnose.priority import CERTAIN

Row = Mapping[str, Json]
Z = 1.959963984540054  # 95%
EXAMPLES = 3


def profile(
    trajectories: Iterable[Row], diagnoses: Iterable[Row], categories: Mapping[str, str], parent: Sequence[Row] = ()
) -> list[dict[str, Json]]:
    """Profile rows, sorted by (category, tool, parameter, label).

    Args:
        trajectories: rows with rollout_id, task_id, mode.
        diagnoses: rows with rollout_id, turn, label, primary, root, tool, parameter, confidence.
        categories: task_id -> category.
        parent: the parent round's profile rows.

    Columns: n (turns with the label), turns (turns of the category that count), rate = n / turns with its Wilson
    interval low, high; n_parent, turns_parent, change of the rate with its Newcombe interval change_low, change_high;
    trend: "up", "down", or "flat" where the interval holds 0 or there is no parent; rollouts: a few ids.
    """
    trajectories = list(trajectories)
    chosen = [row for row in trajectories if row["mode"] == "off"] or trajectories
    category_of = {row["rollout_id"]: categories[row["task_id"]] for row in chosen}
    by_turn: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in diagnoses:
        if row["rollout_id"] in category_of:
            by_turn[row["rollout_id"], row["turn"]].append(row)
    turns: dict[str, int] = defaultdict(int)
    hits: dict[tuple[str, str, str, str], set[tuple[str, int]]] = defaultdict(set)
    for (rollout, turn), rows in sorted(by_turn.items()):
        if any(row["label"] in NOT_THE_POLICY or not row["root"] for row in rows):
            continue
        category = category_of[rollout]
        turns[category] += 1
        for row in rows:
            if row["primary"] or row["confidence"] >= CERTAIN:
                key = (category, row["tool"] or "", row["parameter"] or "", str(row["label"]))
                hits[key].add((rollout, turn))
    before = {_key(row): row for row in parent}
    turns_before = {row["category"]: row["turns"] for row in parent}
    keys = sorted({*hits, *(key for key in before if turns.get(key[0]))})
    return [
        _row(key, hits.get(key, set()), turns[key[0]], before.get(key), turns_before.get(key[0], 0)) for key in keys
    ]


def wilson(n: int, total: int, z: float = Z) -> tuple[float, float]:
    """Score interval of a proportion; (0, 1) where there is nothing to count."""
    if not total:
        return 0.0, 1.0
    p = n / total
    centre = p + z * z / (2 * total)
    half = z * math.sqrt(p * (1 - p) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def difference(n: int, total: int, n_before: int, total_before: int) -> tuple[float, float, float]:
    """Change of a proportion and its interval (Newcombe 1998, method 10)."""
    p, q = n / total, n_before / total_before
    low, high = wilson(n, total)
    low_before, high_before = wilson(n_before, total_before)
    down = math.hypot(p - low, high_before - q)
    up = math.hypot(high - p, q - low_before)
    return p - q, p - q - down, p - q + up


def _key(row: Row) -> tuple[str, str, str, str]:
    return row["category"], row["tool"] or "", row["parameter"] or "", str(row["label"])


def _row(
    key: tuple[str, str, str, str], where: set[tuple[str, int]], total: int, before: Row | None, total_before: int
) -> dict[str, Json]:
    n, n_before = len(where), int(before["n"]) if before else 0
    low, high = wilson(n, total)
    change, change_low, change_high = 0.0, 0.0, 0.0
    if total_before:
        change, change_low, change_high = difference(n, total, n_before, total_before)
    category, tool, parameter, label = key
    return {
        "category": category,
        "tool": tool,
        "parameter": parameter,
        "label": label,
        "n": n,
        "turns": total,
        "rate": n / total,
        "low": low,
        "high": high,
        "n_parent": n_before,
        "turns_parent": total_before,
        "change": change,
        "change_low": change_low,
        "change_high": change_high,
        "trend": "up" if change_low > 0 else "down" if change_high < 0 else "flat",
        "rollouts": sorted({rollout for rollout, _ in where})[:EXAMPLES],
    }
