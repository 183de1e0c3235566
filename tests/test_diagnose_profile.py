"""The profile counts root failures of bare rollouts, with intervals that hold."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.core.judged import Judged
from seal.core.statistics import score_interval
from seal.core.types import Diagnosis, Rollout
from seal.diagnose.profile import difference, profile


def judged(rollout, *diagnoses, mode="off"):
    return Judged(Rollout(rollout, "t", 0, 0, mode, "", "", (), "finished"), (), diagnoses, False, 0.0)


def label(turn, name, primary=True, root=True, tool="", parameter="", confidence=1.0):
    return Diagnosis(turn, name, "", primary, root, tool, parameter, confidence=confidence)


BARE = [
    judged(
        "a",
        label(0, "argument_mismatch", tool="refund", parameter="reason"),
        label(0, "recovery_failure", primary=False, tool="refund", confidence=0.7),
        label(0, "state_mismatch", primary=False, confidence=0.45),
        label(1, "state_mismatch", root=False),
    ),
    judged("b", label(0, "pass"), label(1, "argument_mismatch", tool="refund", parameter="reason")),
]
EVOLVED = [judged("e", label(0, "missing_tool_call", tool="find"), label(1, "gold_error"), mode="full")]


def by_label(rows):
    return {r["label"]: r for r in rows}


def test_counts_root_labels_of_bare_rollouts():
    rows = by_label(profile(BARE + EVOLVED, {"t": "base"}))
    assert sorted(rows) == ["argument_mismatch", "pass", "recovery_failure"]
    found = rows["argument_mismatch"]
    assert (found["n"], found["turns"], found["rollouts"]) == (2, 3, ["a", "b"])
    assert found["rate"] == pytest.approx(2 / 3) and found["low"] < 2 / 3 < found["high"]
    assert (found["tool"], found["parameter"], found["trend"]) == ("refund", "reason", "flat")


def test_without_bare_rollouts_all_count_and_others_faults_do_not():
    (only,) = profile(EVOLVED, {"t": "base"})
    assert (only["label"], only["n"], only["turns"]) == ("missing_tool_call", 1, 1)


def test_change_against_the_parent():
    def share(name, n, parent=()):
        many = [judged(str(i), label(0, name if i < n else "pass")) for i in range(200)]
        return profile(many, {"t": "base"}, parent)

    after = share("state_mismatch", 40, share("missing_tool_call", 120))
    found = by_label(after)
    assert found["missing_tool_call"]["n"] == 0 and found["missing_tool_call"]["n_parent"] == 120
    assert [found[name]["trend"] for name in ("missing_tool_call", "state_mismatch", "pass")] == ["down", "up", "up"]
    assert found["pass"]["change"] == pytest.approx(0.4)


def test_wilson_against_published_values():
    """Newcombe 1998, Statistics in Medicine 17: 857-872 (81/263, 15/148) and 873-890 (56/70 against 48/80)."""
    assert score_interval(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert score_interval(15, 148) == pytest.approx((0.0624, 0.1605), abs=1e-4)
    assert difference(56, 70, 48, 80) == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_rate(counted):
    n, total = counted
    low, high = score_interval(n, total)
    assert 0 <= low <= n / total + 1e-12 and n / total - 1e-12 <= high <= 1
    assert score_interval(total - n, total) == pytest.approx((1 - high, 1 - low), abs=1e-9)
    assert all(map(math.isfinite, difference(n, total, total - n, total)))
