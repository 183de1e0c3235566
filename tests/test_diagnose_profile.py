"""The profile counts root failures of bare rollouts, with intervals that hold."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.diagnose.profile import difference, profile, wilson


def row(rollout, turn, label, primary=True, root=True, tool="", parameter="", confidence=1.0):
    return {
        "rollout_id": rollout,
        "turn": turn,
        "label": label,
        "primary": primary,
        "root": root,
        "tool": tool,
        "parameter": parameter,
        "confidence": confidence,
    }


TRAJECTORIES = [{"rollout_id": r, "task_id": "t", "mode": "off"} for r in ("a", "b")]
EVOLVED = [{"rollout_id": "e", "task_id": "t", "mode": "full"}]
ROWS = [
    row("a", 0, "argument_mismatch", tool="refund", parameter="reason"),
    row("a", 0, "recovery_failure", primary=False, tool="refund", confidence=0.7),
    row("a", 0, "state_mismatch", primary=False, confidence=0.45),
    row("a", 1, "state_mismatch", root=False),
    row("b", 0, "pass"),
    row("b", 1, "argument_mismatch", tool="refund", parameter="reason"),
    row("e", 0, "missing_tool_call", tool="find"),
    row("e", 1, "gold_error"),
]


def by_label(rows):
    return {r["label"]: r for r in rows}


def test_counts_root_labels_of_bare_rollouts():
    rows = by_label(profile(TRAJECTORIES + EVOLVED, ROWS, {"t": "base"}))
    assert sorted(rows) == ["argument_mismatch", "pass", "recovery_failure"]
    found = rows["argument_mismatch"]
    assert (found["n"], found["turns"], found["rollouts"]) == (2, 3, ["a", "b"])
    assert found["rate"] == pytest.approx(2 / 3) and found["low"] < 2 / 3 < found["high"]
    assert (found["tool"], found["parameter"], found["trend"]) == ("refund", "reason", "flat")


def test_without_bare_rollouts_all_count_and_others_faults_do_not():
    (only,) = profile(EVOLVED, ROWS, {"t": "base"})
    assert (only["label"], only["n"], only["turns"]) == ("missing_tool_call", 1, 1)


def test_change_against_the_parent():
    many = [{"rollout_id": str(i), "task_id": "t", "mode": "off"} for i in range(200)]
    before = profile(
        many, [row(str(i), 0, "missing_tool_call" if i < 120 else "pass") for i in range(200)], {"t": "base"}
    )
    after = profile(
        many, [row(str(i), 0, "state_mismatch" if i < 40 else "pass") for i in range(200)], {"t": "base"}, before
    )
    found = by_label(after)
    assert found["missing_tool_call"]["n"] == 0 and found["missing_tool_call"]["n_parent"] == 120
    assert [found[label]["trend"] for label in ("missing_tool_call", "state_mismatch", "pass")] == ["down", "up", "up"]
    assert found["pass"]["change"] == pytest.approx(0.4)


def test_wilson_against_published_values():
    """Newcombe 1998, Statistics in Medicine 17: 857-872 (81/263, 15/148) and 873-890 (56/70 against 48/80)."""
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson(15, 148) == pytest.approx((0.0624, 0.1605), abs=1e-4)
    assert difference(56, 70, 48, 80) == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_rate(counted):
    n, total = counted
    low, high = wilson(n, total)
    assert 0 <= low <= n / total + 1e-12 and n / total - 1e-12 <= high <= 1
    assert wilson(total - n, total) == pytest.approx((1 - high, 1 - low), abs=1e-9)
    assert all(map(math.isfinite, difference(n, total, total - n, total)))
