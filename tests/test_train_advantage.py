"""Group-relative advantage: the laws, and zero-variance groups found on raw outcomes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.train.advantage import group_advantages, turn_advantages

batches = st.lists(st.lists(st.booleans(), min_size=1, max_size=8), min_size=1, max_size=6)


@given(batches)
def test_each_group_is_centred_and_keeps_the_sign_of_the_outcome(batch):
    outcomes = [float(r) for group in batch for r in group]
    keys = [i for i, group in enumerate(batch) for _ in group]
    got = group_advantages(outcomes, keys)
    for i, group in enumerate(batch):
        values = got.values[np.array(keys) == i]
        assert abs(values.sum()) < 1e-9
        if len(set(group)) > 1:
            assert all((value > 0) == outcome for value, outcome in zip(values, group, strict=True))


@given(batches, st.randoms())
def test_order_in_the_batch_is_irrelevant(batch, rng):
    rows = [(float(r), i) for i, group in enumerate(batch) for r in group]
    order = list(range(len(rows)))
    rng.shuffle(order)
    straight = group_advantages(*zip(*rows, strict=True))
    shuffled = group_advantages(*zip(*(rows[i] for i in order), strict=True))
    assert np.allclose(straight.values[order], shuffled.values, atol=1e-12)
    assert (straight.all_pass, straight.all_fail, straight.mixed) == (
        shuffled.all_pass,
        shuffled.all_fail,
        shuffled.mixed,
    )


def test_the_formula_by_hand():
    got = group_advantages([1, 0, 0, 0], "aaaa")
    assert got.values == pytest.approx([0.75 / 0.5001, -0.25 / 0.5001, -0.25 / 0.5001, -0.25 / 0.5001])


def test_zero_variance_groups_are_counted_and_masked_or_kept():
    outcomes, keys = [1, 1, 0, 0, 1, 0, 0.1, 0.1, 0.1], "aabbccddd"
    got = group_advantages(outcomes, keys)
    assert (got.all_pass, got.all_fail, got.mixed) == (1, 2, 1)
    assert got.trained.tolist() == [False] * 4 + [True] * 2 + [False] * 3
    assert (got.values[~got.trained] == 0).all()  # exactly, though the mean of three 0.1 is not 0.1
    kept = group_advantages(outcomes, keys, "keep")
    assert kept.trained.all() and (kept.values == got.values).all()


def test_nothing_to_train_on():
    got = group_advantages([], [])
    assert len(got.values) == 0 and got.mixed == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=12))
def test_by_turn_equals_comparing_each_turn_among_those_that_reached_it(rollouts):
    """Rollouts of four-turn tasks as (task, turns served); one that served fewer failed at the next."""
    passed = [[True] * n + [False] * (n < 4) for _, n in rollouts]
    got = turn_advantages(passed, [task for task, _ in rollouts])
    for task in {task for task, _ in rollouts}:
        for turn in range(4):
            here = [i for i, (t, n) in enumerate(rollouts) if t == task and n >= turn]
            served = [float(rollouts[i][1] > turn) for i in here]
            values = [got[i].get(turn) for i in here]
            if len(set(served)) < 2:
                assert values == [None] * len(here)
            else:
                assert values == pytest.approx(group_advantages(served, [0] * len(here)).values)
    assert all(turn <= n for (_, n), turns in zip(rollouts, got, strict=True) for turn in turns)
