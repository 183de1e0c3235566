"""Intervals cover, pair, and depend on nothing but their inputs."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.core.statistics import bootstrap_mean, paired_difference, student_t, wilson

ROWS = st.lists(st.tuples(st.sampled_from([0.0, 1 / 3, 0.5, 1.0]), st.integers(0, 5), st.integers(0, 2)), min_size=1)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"), [(0, 10, 0.0, 0.2775), (5, 10, 0.2366, 0.7634), (10, 10, 0.7225, 1.0)]
)
def test_wilson_is_the_textbook_interval(k, n, low, high):
    estimate = wilson(k, n)
    assert (estimate.low, estimate.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))
    assert wilson(0, 0).high == 1.0


@pytest.mark.parametrize(("df", "t"), [(1, 12.7062), (2, 4.3027), (3, 3.1824), (6, 2.4469), (30, 2.0423)])
def test_student_t_quantiles(df, t):
    assert student_t(0.975, df) == pytest.approx(t, rel=6e-3)


@settings(max_examples=40, deadline=None)
@given(ROWS, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows, rng):
    shuffled = list(rows)
    rng.shuffle(shuffled)
    for seeds in (False, True):
        a, b = (
            bootstrap_mean([r[0] for r in x], [r[1] for r in x], [r[2] for r in x] if seeds else None, draws=200)
            for x in (rows, shuffled)
        )
        assert a == b
        assert 0 <= a.low <= a.mean <= a.high <= 1
        assert a.mean == pytest.approx(np.mean([r[0] for r in rows]))


def _coverage(n_clusters: int, per_cluster: int, spread: float, worlds: int, rows_are_clusters: bool = False) -> float:
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(worlds):
        p = np.clip(0.4 + spread * rng.standard_normal(n_clusters), 0, 1)
        values = (rng.random((n_clusters, per_cluster)) < p[:, None]).astype(float).ravel()
        clusters = np.repeat(np.arange(n_clusters), per_cluster)
        estimate = bootstrap_mean(values, range(len(values)) if rows_are_clusters else clusters.tolist(), draws=600)
        hits += estimate.low <= 0.4 <= estimate.high
    return hits / worlds


def test_the_interval_covers_where_one_over_rows_does_not():
    assert 0.90 <= _coverage(40, 4, 0.3, 120) <= 0.99
    assert 0.90 <= _coverage(7, 30, 0.15, 120) <= 1.0  # few clusters
    assert _coverage(7, 30, 0.15, 60, rows_are_clusters=True) < 0.75


def test_seeds_and_shared_scenarios_are_both_sources_of_error():
    rng, worlds, hits = np.random.default_rng(5), 150, 0
    for _ in range(worlds):
        logits = rng.normal(0, 0.1, (7, 1)) + rng.normal(0, 0.2, (1, 40)) + rng.normal(0, 0.1, (7, 40))
        rows = [(logits[s, c], c, s) for s in range(7) for c in range(40)]
        estimate = bootstrap_mean(*zip(*rows, strict=True), bounds=(-1.0, 1.0), draws=400)
        hits += estimate.low <= 0 <= estimate.high
    assert hits / worlds >= 0.9
    assert estimate.clusters == 7


def test_pairing_cancels_what_both_find_hard():
    rng = random.Random(1)
    hard = {i: rng.random() for i in range(60)}
    b = {i: p * 0.8 for i, p in hard.items()}
    a = {i: p * 0.8 + 0.05 + 0.02 * rng.random() for i, p in hard.items()}
    scenario = {i: i // 2 for i in hard}
    paired = paired_difference(a, b, scenario)
    alone = bootstrap_mean(list(a.values()), list(scenario.values()))
    assert paired.low > 0.04
    assert paired.high - paired.low < (alone.high - alone.low) / 5
    assert paired_difference(b, a, scenario).mean == pytest.approx(-paired.mean)


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.integers(0, 30), st.booleans(), min_size=1))
def test_a_thing_equals_itself(outcomes):
    same = paired_difference(outcomes, outcomes, {key: key for key in outcomes})
    assert same.mean == 0.0
    assert same.low <= 0 <= same.high
    assert paired_difference(outcomes, {}, {}).n == 0


def test_equal_outcomes_are_no_proof_that_nothing_differs():
    for n in (2, 10, 200):
        keys = range(n)
        zeros = dict.fromkeys(keys, 0.0)
        same = paired_difference(zeros, zeros, {key: key for key in keys})
        assert same.high == -same.low == wilson(0, n).high > 0


def test_one_seed_speaks_of_its_scenarios():
    outcomes = [float(i % 10 == 0) for i in range(200)]
    of_one_seed = bootstrap_mean(outcomes, range(200), [7] * 200)
    assert of_one_seed == bootstrap_mean(outcomes, range(200))
    assert 0.05 < of_one_seed.low < 0.1 < of_one_seed.high < 0.15
    by_key = {(7, i): outcome for i, outcome in enumerate(outcomes)}
    cluster_of, seed_of = ({key: key[at] for key in by_key} for at in (1, 0))
    gained = paired_difference(by_key, dict.fromkeys(by_key, 0.0), cluster_of, seed_of)
    assert gained.clusters == 200 and 0.05 < gained.low < gained.high < 0.15


def test_little_evidence_claims_little():
    assert (bootstrap_mean([1.0, 1.0], ["one", "one"]).low, bootstrap_mean([], []).high) == (0.0, 1.0)
    none = bootstrap_mean([0.0] * 20, range(20))
    assert none.low == 0.0 and 0.1 < none.high < 0.25
    assert bootstrap_mean([1.0] * 4, [1, 2, 1, 2], [1, 1, 2, 2]).low < 0.5
    wide, narrow = (bootstrap_mean([0.0, 1.0] * n, range(2 * n)) for n in (4, 40))
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)
