"""What a person compares between rounds: scores with intervals, differences, label rates, and what they cost. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seal.core.judged import Judged
from seal.core.labels import FAILURES
from seal.core.seeds import RoundKey
from seal.core.statistics import Estimate, bootstrap_mean, paired_difference
from seal.core.types import Json, Rollout, Task
from seal.evaluate.suite import Evaluation
from seal.interface.state import InterfaceState

Rows = Sequence[Mapping[str, Json]]  # of the evaluations table
Outcomes = dict[tuple[str, int], float]  # (task, trial) -> outcome
_SCORES = ("strict", "dev", "on")
CURVE_COLUMNS = (
    *("round", "depth", "rollouts", "tokens"),
    *(f"{name}{end}" for name in _SCORES for end in ("", "_low", "_high")),
    "progress",
)


def outcomes(rows: Rows, split: str = "test", shown: bool = False, outcome: str = "success") -> Outcomes:
    """Of the bare rollouts of a split, or of those with the interface shown."""
    return {
        (row["task_id"], row["trial"]): float(row[outcome])
        for row in rows
        if row["split"] == split and (row["mode"] != "off") == shown
    }


def score(of: Mapping[tuple[str, int], float], tasks: Mapping[str, Task]) -> Estimate:
    """Mean outcome with its interval over scenarios."""
    keys = sorted(of)
    return bootstrap_mean([of[key] for key in keys], [_scenario(tasks, key) for key in keys])


def difference(
    a: Mapping[tuple[str, int], float], b: Mapping[tuple[str, int], float], tasks: Mapping[str, Task]
) -> Estimate:
    """Mean of a - b over the (task, trial) both have, paired, with its interval over scenarios."""
    return paired_difference(a, b, {key: _scenario(tasks, key) for key in a})


def label_rates(judged: Iterable[Judged], tasks: Mapping[str, Task]) -> dict[str, Estimate]:
    """Label -> share of all user turns whose primary label it is, as a failure of the turn's own (root), with its
    interval over scenarios. Sorted; labels that occur."""
    scenarios, failures = [], []  # of each user turn: its scenario, and by what label it fails, if it does
    for j in (j for j in judged if j.usable):
        for turn in sorted({d.turn for d in j.diagnoses}):
            label = j.primary(turn)
            scenarios.append(tasks[j.rollout.task_id].scenario_id)
            failures.append(str(label.label) if label and label.root and label.label in FAILURES else "")
    return {
        label: bootstrap_mean([float(label == other) for other in failures], scenarios)
        for label in sorted({*failures} - {""})
    }


def cost(rollouts: Iterable[Rollout]) -> dict[str, int]:
    """What was played: rollouts, and tokens the policy sampled."""
    played = list(rollouts)
    return {"rollouts": len(played), "tokens": sum(sum(rollout.tokens.loss_mask) for rollout in played)}


def metrics(
    evaluation: Evaluation,
    tasks: Sequence[Task],
    split: str = "test",
    parent: Rows | None = None,
    start: Rows | None = None,
) -> dict[str, Any]:
    """The scores part of metrics.json.

    strict      the reported split, interface off: what the trained policy does alone
    progress    the same rollouts, share of valid user turns
    dev         the dev split, interface off (only where it was played)
    clean       strict without the tasks known to be broken (only where there are such)
    on, mismatch  the split with the interface on, and on - strict, paired (only where it was measured)
    gain        strict minus that of `parent` and of `start` (rows of their evaluations tables), paired
    labels      label -> share of user turns, bare rollouts of the split; label_intervals: its [low, high]
    """
    by_id, rows = {task.task_id: task for task in tasks}, evaluation.rows("")
    off, on, dev = outcomes(rows, split), outcomes(rows, split, shown=True), outcomes(rows, "dev")
    clean = {key: value for key, value in off.items() if not by_id[key[0]].known_bad}
    categories: dict[str, Outcomes] = defaultdict(dict)
    for key, value in off.items():
        categories[by_id[key[0]].category][key] = value
    rates = label_rates(evaluation.judged(split, "off"), by_id)
    found: dict[str, Any] = {
        "strict": score(off, by_id),
        "progress": score(outcomes(rows, split, outcome="progress"), by_id),
        "by_category": {name: score(categories[name], by_id) for name in sorted(categories)},
        "gain": {
            name: difference(off, outcomes(other, split), by_id)
            for name, other in (("parent", parent), ("start", start))
            if other is not None
        },
        "labels": {label: round(rate.mean, 6) for label, rate in rates.items()},
        "label_intervals": {label: [round(rate.low, 6), round(rate.high, 6)] for label, rate in rates.items()},
        "evaluate": cost(j.rollout for j in evaluation.judged()),
    }
    if dev:
        found["dev"] = score(dev, by_id)
    if len(clean) < len(off):
        found["clean"] = score(clean, by_id)
    if on:
        found |= {"on": score(on, by_id), "mismatch": difference(on, off, by_id)}
    return _plain(found)


def round_metrics(
    found: Mapping[str, Any],
    key: RoundKey,
    parent: str,
    before: InterfaceState,
    after: InterfaceState,
    spent: Mapping[str, Mapping[str, int]],
    parent_total: Mapping[str, int] | None = None,
    **identity: Json,
) -> dict[str, Any]:
    """The whole of metrics.json: `found` (see `metrics`) with what the round is and what it cost.

    Args: `spent` maps collect, probe and train (the gate's rollouts count too) to rollouts, tokens and, for train,
    updates; `parent_total` is `total` of the parent's metrics; `identity`: env, policy_hash and the like.
    """
    ids, old = {item.id for item in after.active}, {item.id for item in before.active}
    gate_before, gate_after = ({i.id for i in s.items if i.status == "rolled_back"} for s in (before, after))
    total = {
        key: (parent_total or {}).get(key, 0) + sum(part.get(key, 0) for part in spent.values())
        for key in ("rollouts", "tokens", "updates")
    }
    return {
        "round": key.id,
        "parent": parent,
        "depth": key.depth,
        **identity,
        "interface": {
            "hash": after.hash,
            "active": len(ids),
            "words": sum(len(item.text.split()) for item in after.active),
            "added": len(ids - old),
            "retired": len(old - ids),
            "rolled_back": len(gate_after - gate_before),
        },
        "spent": {name: dict(part) for name, part in spent.items()},
        "total": total,
        **found,
    }


def curve_row(found: Mapping[str, Any]) -> dict[str, Any]:
    """One point of the learning curve, from metrics.json; keys CURVE_COLUMNS, costs since the start."""
    row: dict[str, Any] = {"round": found["round"], "depth": found["depth"]}
    row |= {key: found["total"][key] for key in ("rollouts", "tokens")}
    for name in _SCORES:
        estimate = found.get(name) or {}
        row |= {name: estimate.get("mean"), f"{name}_low": estimate.get("low"), f"{name}_high": estimate.get("high")}
    return {**row, "progress": found["progress"]["mean"]}


def _scenario(tasks: Mapping[str, Task], key: tuple[str, int]) -> str:
    return tasks[key[0]].scenario_id


def _plain(value: Any) -> Any:
    if isinstance(value, Estimate):
        return value.row()
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, dict) else value
