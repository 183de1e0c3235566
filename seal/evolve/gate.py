"""The gate of new interface items: dev tasks played with and without them at the same seeds; what hurts goes.

One arm plays under the new interface, one under the old, and one per new item under the new interface without that
item, on the tasks that show it. An item is rolled back when the interval of its effect on progress lies below 0; when
no single item is to blame but all together hurt, all are. Every decision is a row.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seal.core.judged import Judged
from seal.core.seeds import rollout_id, seed_for
from seal.core.statistics import Estimate, paired_difference
from seal.core.types import Json, Mode, Rollout, Task
from seal.diagnose.judge import judge as judge_all
from seal.env.base import Environment
from seal.evolve.step import roll_back
from seal.interface.render import shows_feedback
from seal.interface.state import InterfaceState, Item
from seal.interface.view import View
from seal.policy import counter_of
from seal.policy.base import Limits, Policy
from seal.rollout.engine import Request, play
from seal.rollout.plan import choose_tasks

ALL = "*"  # the item id of the row about all new items together
Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Gated:
    """The state that passed, rows of the change log, one row a decision, and what the probes cost."""

    state: InterfaceState
    changes: list[dict[str, Json]]
    decisions: list[dict[str, Json]]
    spent: Mapping[str, int]


def gate(
    env: Environment,
    policy: Policy,
    old: InterfaceState,
    new: InterfaceState,
    n_tasks: int,
    mode: Mode,
    temperature: float,
    limits: Limits,
    priority: Sequence[str],
    round_id: str,
    depth: int,
    run_seed: int,
    samples: int = 4,
    judge: Callable[[Environment, Sequence[Rollout], Sequence[str]], list[Judged]] = judge_all,
) -> Gated:
    """Probe what `new` adds to `old` on `n_tasks` dev tasks (0: all passes unprobed), `samples` rollouts each."""
    before = {item.id for item in old.active}
    added = [item for item in new.active if item.id not in before]
    if not n_tasks or not added:
        return Gated(new, [], [], {"rollouts": 0, "tokens": 0})
    dev = [task for task in env.tasks() if task.split == "dev" and not task.known_bad]
    tasks = choose_tasks(dev, n_tasks, run_seed, depth, "probe")
    seen = {item.id: [task for task in tasks if shows(env, task, new, item, mode)] for item in added}

    def requests(arm: int, tasks: Sequence[Task], dropped: str = "") -> list[Request]:
        return [
            Request(
                rollout_id(round_id, "probe", arm, task.task_id, sample),
                task,
                sample,
                seed_for(run_seed, depth, "probe", 0, task.task_id, sample),
                mode,
                dropped,
            )
            for task in tasks
            for sample in range(samples)
        ]

    arms = requests(0, tasks)
    for arm, item in enumerate(added, 2):
        arms += requests(arm, seen[item.id], item.id)
    rollouts = play(env, policy, arms, new, limits, temperature)
    rollouts += play(env, policy, requests(1, tasks), old, limits, temperature)
    judged = judge(env, rollouts, priority)
    with_all, without = judged[: len(tasks) * samples], judged[len(arms) :]
    single = judged[len(tasks) * samples : len(arms)]
    scenario = {task.task_id: task.scenario_id for task in tasks}

    rows = [_decision(round_id, None, _effect(with_all, without, scenario))]
    for item in added:
        lacking = [j for j in single if j.rollout.dropped == item.id]
        rows.append(_decision(round_id, item, _effect(with_all, lacking, scenario)))
    guilty = {row["item"]: row for row in rows if row["decision"] == "rollback" and row["item"] != ALL}
    if rows[0]["decision"] == "rollback" and not guilty:
        guilty = {item.id: rows[0] for item in added}
        rows = [{**row, "decision": "rollback"} for row in rows]
    state, changes = new, []
    for id_, row in guilty.items():
        reason = f"gate: {row['uplift']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}] on {row['n']} pairs"
        state, more = roll_back(state, [id_], reason, round_id, counter_of(policy))
        changes += more
    tokens = sum(sum(j.rollout.tokens.loss_mask) for j in judged)
    return Gated(state, changes, rows, {"rollouts": len(judged), "tokens": tokens})


def shows(env: Environment, task: Task, state: InterfaceState, item: Item, mode: Mode) -> bool:
    """Whether a rollout of the task can look different for the item."""
    last = len(task.turns) - 1
    if item.where == "feedback":
        return shows_feedback(mode)
    if item.where == "docs" and mode == "feedback_only":  # told after an error of its tool, see seal.interface.feedback
        return any(f"{item.target}.".startswith(f"{doc.name}.") for doc in env.docs(task, last))
    full, lacking = (View(env, task, state, mode, dropped) for dropped in ("", item.id))
    told = full.docs(0) != lacking.docs(0) or full.hints() != lacking.hints()
    return told or any(full.revealed(turn) != lacking.revealed(turn) for turn in range(1, last + 1))


def _effect(a: Sequence[Judged], b: Sequence[Judged], scenario: Mapping[str, str]) -> tuple[Estimate, Estimate]:
    """(on progress, on success) of a minus b, paired by task and sample."""

    def by_key(judged: Sequence[Judged], outcome: str) -> dict[Key, float]:
        return {(j.rollout.task_id, j.rollout.sample): float(getattr(j, outcome)) for j in judged if j.usable}

    clusters = {(j.rollout.task_id, j.rollout.sample): scenario[j.rollout.task_id] for j in a}
    effects = [paired_difference(by_key(a, o), by_key(b, o), clusters) for o in ("progress", "success")]
    return effects[0], effects[1]


def _decision(round_id: str, item: Item | None, effect: tuple[Estimate, Estimate]) -> dict[str, Any]:
    progress, success = (estimate.row() for estimate in effect)
    return {
        "round": round_id,
        "item": item.id if item else ALL,
        "kind": item.kind if item else "",
        "target": item.target if item else "",
        "decision": "rollback" if progress["n"] and progress["high"] < 0 else "keep" if progress["n"] else "untested",
        "uplift": progress["mean"],
        "low": progress["low"],
        "high": progress["high"],
        "uplift_success": success["mean"],
        "n": progress["n"],
        "scenarios": progress["clusters"],
    }
