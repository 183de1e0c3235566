"""Intervals, every one a pure function of its inputs: no clock, no global generator, no order of rows.

Rows are clustered: tasks of one scenario fail together, and runs of one seed share a history. Resampling rows would
understate both, so the bootstrap resamples whole clusters. With two kinds of cluster (seeds and the scenarios they
share) both are resampled and a row counts by the product of its two multiplicities: the pigeonhole bootstrap of Owen
(2007), which is right whether scenarios are shared between seeds or not, and errs on the wide side.

Percentiles of few clusters are too narrow. Their levels are pushed out as Hesterberg (2015, "expanded percentile")
has it: by Student's t against the normal, and sqrt(n / (n - 1)), n the smaller number of clusters.
"""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import NormalDist

import numpy as np

DRAWS = 4000
LEVEL = 0.95
Z = 1.959963984540054  # quantile of the normal that bounds 95%
_CHUNK = 1_000_000  # multiplicities held at once


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its two-sided 95% interval; `n` rows in `clusters` clusters (the smaller count of two kinds)."""

    mean: float
    low: float
    high: float
    n: int
    clusters: int

    def row(self) -> dict[str, float | int]:
        """As JSON, rounded so that the last bit of a sum does not show."""
        return {key: round(value, 6) if isinstance(value, float) else value for key, value in asdict(self).items()}


def score_interval(successes: float, n: int, z: float = Z) -> tuple[float, float]:
    """Wilson's score interval of a share of `n` independent rows; (0, 1) where there is nothing to count.

    `z`: quantile of the normal that bounds it, by default that of 95%.
    """
    if not n:
        return 0.0, 1.0
    p = successes / n
    centre = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def wilson(successes: float, n: int, level: float = LEVEL) -> Estimate:
    """`score_interval` as an estimate, which it holds to the last bit. Without rows: (0, 1) around 0."""
    low, high = score_interval(successes, n, NormalDist().inv_cdf(0.5 + level / 2))
    p = successes / n if n else 0.0
    return Estimate(p, min(p, low), max(p, high), n, n)


def bootstrap_mean(
    values: Sequence[float],
    clusters: Sequence[Hashable],
    seeds: Sequence[Hashable] | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    seed: int = 0,
    draws: int = DRAWS,
    level: float = LEVEL,
) -> Estimate:
    """The mean of rows, and its bootstrap interval over clusters (and over seeds, if given), cut to `bounds`.

    Args: values (N,); clusters (N,), e.g. the scenario of each row; seeds (N,), the run each row comes from.
    One cluster says nothing about others: the interval is then `bounds`; with one seed it is over clusters alone, and
    speaks of that seed's run. Where all rows of a share are 0, or all are 1, or all differences are 0, resampling would
    claim certainty: Wilson's interval over the clusters stands in, of a difference to either side, since it is at most
    as far from 0 as clusters that differ are frequent.
    """
    v = np.asarray(values, dtype=np.float64)
    if not len(v):
        return Estimate(0.0, *bounds, 0, 0)
    rows, n_rows = _codes(seeds if seeds is not None else [0] * len(v))
    columns, n_columns = _codes(clusters)
    order = np.lexsort((v, columns, rows))  # sums do not depend on how the rows were ordered
    cells = (rows * n_columns + columns)[order]
    sums = np.bincount(cells, v[order], n_rows * n_columns).reshape(n_rows, n_columns)
    counts = np.bincount(cells, minlength=n_rows * n_columns).reshape(n_rows, n_columns)
    mean, n = float(sums.sum() / len(v)), min(n_rows, n_columns) if n_rows > 1 else n_columns
    if n < 2:
        return Estimate(mean, *bounds, len(v), n)
    if bounds == (0.0, 1.0) and v.min() == v.max() and mean in (0.0, 1.0):
        whole = wilson(mean * n, n, level)
        return Estimate(mean, whole.low, whole.high, len(v), n)
    if bounds == (-1.0, 1.0) and not v.any():
        high = wilson(0, n, level).high
        return Estimate(0.0, -high, high, len(v), n)
    rng = np.random.Generator(np.random.Philox(seed))
    means = _resampled(rng, sums, counts, n_rows > 1, draws)
    tail = _expanded_tail(n, level)
    low, high = np.nanquantile(means, [tail, 1 - tail])
    return Estimate(mean, max(bounds[0], min(mean, float(low))), min(bounds[1], max(mean, float(high))), len(v), n)


def paired_difference(
    a: Mapping[Hashable, float],
    b: Mapping[Hashable, float],
    cluster_of: Mapping[Hashable, Hashable],
    seed_of: Mapping[Hashable, Hashable] | None = None,
    **options: float,
) -> Estimate:
    """Mean of a - b over the keys that both have, and its clustered interval.

    A key is what was the same for both: a task, a (task, trial), a (seed, task). What both find hard cancels out.
    """
    keys = sorted(a.keys() & b.keys(), key=str)
    seeds = [seed_of[key] for key in keys] if seed_of is not None else None
    differences = [a[key] - b[key] for key in keys]
    return bootstrap_mean(differences, [cluster_of[key] for key in keys], seeds, bounds=(-1.0, 1.0), **options)


def _codes(labels: Sequence[Hashable]) -> tuple[np.ndarray, int]:
    """Labels as 0 .. k - 1 in the order of their text, and k."""
    places = {label: i for i, label in enumerate(sorted(set(labels), key=str))}
    return np.fromiter((places[label] for label in labels), np.int64, len(labels)), len(places)


def _resampled(rng: np.random.Generator, sums: np.ndarray, counts: np.ndarray, both: bool, draws: int) -> np.ndarray:
    """(draws,) means of resampled rows and columns of the (R, C) cell sums and counts; NaN where a draw met no row."""
    n_rows, n_columns = sums.shape
    parts = []
    for start in range(0, draws, step := max(1, _CHUNK // n_columns)):
        size = min(step, draws - start)
        times = rng.multinomial(n_rows, np.full(n_rows, 1 / n_rows), size) if both else np.ones((size, 1))
        columns = rng.multinomial(n_columns, np.full(n_columns, 1 / n_columns), size)
        total, weight = ((times @ cells * columns).sum(axis=1) for cells in (sums, counts))
        with np.errstate(invalid="ignore"):
            parts.append(total / weight)
    return np.concatenate(parts)


def _expanded_tail(n: int, level: float) -> float:
    normal = NormalDist()
    t = student_t(0.5 + level / 2, n - 1)
    return normal.cdf(-math.sqrt(n / (n - 1)) * t)


def student_t(p: float, df: int) -> float:
    """Quantile of Student's t for p > 0.5: exact for 1 and 2 degrees of freedom, else Abramowitz and Stegun 26.7.5.

    Not scipy.special.stdtrit: it moves the sixth digit of intervals of 4 to 8 clusters, a third of the figures of
    results/margin/shop, and committed results must come out as they are.
    """
    if df == 1:
        return math.tan(math.pi * (p - 0.5))
    if df == 2:
        return (2 * p - 1) / math.sqrt(2 * p * (1 - p))
    z = NormalDist().inv_cdf(p)
    return (
        z
        + (z**3 + z) / (4 * df)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * df**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * df**4)
    )
