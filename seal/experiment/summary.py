"""What an experiment says: scores, gains and margins over rounds, with intervals over seeds and scenarios."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from seal.core.statistics import Estimate, bootstrap_mean, paired_difference
from seal.experiment.results import COST

Record = Mapping[str, Any]  # see seal.experiment.runs.records
Key = tuple[int, str, int]  # seed, task, trial
Outcomes = Mapping[Key, float]
Run = tuple[str, int, int]  # arm, seed, depth


def whole(runs: Iterable[Run]) -> frozenset[Run]:
    """Those that the rows of an arm are about: lines of one length, so that each row is of the same seeds.

    Of an arm that was interrupted, either what the longest lines have more or the shortest lines are left out: that
    which keeps most.
    """
    lines: dict[str, dict[int, int]] = defaultdict(dict)  # arm -> seed -> its last depth
    for arm, seed, depth in runs:
        lines[arm][seed] = max(depth, lines[arm].get(seed, 0))
    kept: set[Run] = set()
    for arm, last in lines.items():
        cells = {depth: (depth + 1) * sum(other >= depth for other in last.values()) for depth in last.values()}
        depth = max(cells, key=lambda depth: (cells[depth], depth))
        kept |= {(arm, seed, at) for seed, other in last.items() if other >= depth for at in range(depth + 1)}
    return frozenset(kept)


def outcomes(
    records: Sequence[Record],
    arm: str,
    depth: int,
    split: str = "test",
    shown: bool = False,
    outcome: Literal["success", "progress"] = "success",
) -> dict[Key, float]:
    """(seed, task, trial) -> success of one arm after `depth` rounds, or the share of its user turns that were served;
    bare or with the interface shown."""
    return {
        (r["seed"], task, trial): float(success if outcome == "success" else progress)
        for r in records
        if r["arm"] == arm and r["depth"] == depth
        for at, under, task, trial, success, progress in r["outcomes"]
        if at == split and (under != "off") == shown
    }


def summarise(
    records: Sequence[Record], scenarios: Mapping[str, str], split: str = "test"
) -> list[dict[str, float | int | str]]:
    """A row per (arm, depth), arms in the order of the records. `scenarios`: task -> scenario.

    strict, dev and on (interface on) with interval; gain: strict minus the start's, paired by (seed, task); margin:
    minus the first arm's at the same depth, behind: the last arm's minus this one's; progress, progress_gain, ... the
    same of the share of user turns served; seeds, and rollouts, tokens, updates as means over seeds. A difference is
    taken over the seeds that both have; of a thing and itself (all arms share their start) there is none.
    """
    arms = list(dict.fromkeys(r["arm"] for r in records))
    rows = []
    for arm in arms:
        for depth in sorted({r["depth"] for r in records if r["arm"] == arm}):
            of = [r for r in records if r["arm"] == arm and r["depth"] == depth]
            row: dict[str, float | int | str] = {"arm": arm, "depth": depth, "seeds": len(of)}
            dev, on = outcomes(records, arm, depth, "dev"), outcomes(records, arm, depth, split, shown=True)
            row |= compare(scenarios, dev=dev, on=on)
            for outcome, score, prefix in (("success", "strict", ""), ("progress", "progress", "progress_")):
                here, start, first, last = (
                    outcomes(records, of_arm, at, split, outcome=outcome)
                    for of_arm, at in ((arm, depth), (arm, 0), (arms[0], depth), (arms[-1], depth))
                )
                differences = {
                    "gain": (here, start if depth else {}),
                    "margin": (here, first if depth and arm != arms[0] else {}),
                    "behind": (last, here if depth and arm != arms[-1] else {}),
                }
                row |= compare(scenarios, **{score: here, **{prefix + name: of for name, of in differences.items()}})
            totals = [r["metrics"]["total"] for r in of]
            row |= {key: sum(total[key] for total in totals) / len(totals) for key in COST}
            rows.append(row)
    return rows


def compare(scenarios: Mapping[str, str], **wanted: Outcomes | tuple[Outcomes, Outcomes]) -> dict[str, float | None]:
    """Columns name, name_low, name_high: the mean of outcomes; of two, the first minus the second, paired."""
    row = {}
    for name, of in wanted.items():
        estimate = _paired(*of, scenarios) if isinstance(of, tuple) else _mean(of, scenarios)
        row |= _columns(name, estimate)
    return row


def _mean(values: Mapping[Key, float], scenarios: Mapping[str, str]) -> Estimate:
    keys = sorted(values)
    clusters = [scenarios[task] for _, task, _ in keys]
    return bootstrap_mean([values[key] for key in keys], clusters, [seed for seed, _, _ in keys])


def _paired(a: Mapping[Key, float], b: Mapping[Key, float], scenarios: Mapping[str, str]) -> Estimate:
    cluster_of, seed_of = ({key: part(key) for key in a} for part in (lambda k: scenarios[k[1]], lambda k: k[0]))
    return paired_difference(a, b, cluster_of, seed_of)


def _columns(name: str, estimate: Estimate) -> dict[str, float | None]:
    """mean, low and high as columns; None where nothing was measured."""
    row = estimate.row() if estimate.n else {}
    return {f"{name}{end}": row.get(part) for end, part in (("", "mean"), ("_low", "low"), ("_high", "high"))}
