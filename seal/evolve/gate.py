"""The gate of new interface items: dev tasks played with and without them at the same seeds; what hurts goes.

One arm plays under the new interface, one under the old, and one per new item under the new interface without that
item, on the tasks that show it. An item is rolled back when the interval of its effect on progress lies below 0; when
no single item is to blame but all together hurt, all are. Every decision is a row.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from seal.core.judged import Judged
from seal.core.seeds import RoundKey
from seal.core.statistics import Estimate, paired_difference
from seal.core.types import Json, Mode, Rollout, Task
from seal.diagnose.judge import judge as judge_all
from seal.env.base import Environment
from seal.evolve.changes import ChangeLog, Row
from seal.interface.render import shows_feedback
from seal.interface.state import InterfaceState, Item
from seal.interface.view import View
from seal.policy import counter_of
from seal.policy.base import Limits, Policy
from seal.rollout.engine import Request, play
from seal.rollout.plan import choose_tasks
from seal.settings.rounds import Round

ALL = "*"  # the item id of the row about all new items together
SAMPLES = 4  # rollouts of a task in each arm


@dataclass(frozen=True, slots=True)
class Gated:
    """The state that passed, rows of the change log, one row a decision, and what the probes cost."""

    state: InterfaceState
    changes: list[Row]
    decisions: list[Row]
    spent: Mapping[str, int]


def gate(
    env: Environment,
    policy: Policy,
    old: InterfaceState,
    new: InterfaceState,
    params: Round,
    key: RoundKey,
    judge: Callable[[Environment, Sequence[Rollout], Sequence[str]], list[Judged]] = judge_all,
) -> Gated:
    """Probe what `new` adds to `old` on params.evolve.gate.tasks dev tasks (0: all passes unprobed)."""
    before = {item.id for item in old.active}
    added = [item for item in new.active if item.id not in before]
    if not params.evolve.gate.tasks or not added:
        return Gated(new, [], [], {"rollouts": 0, "tokens": 0})
    dev = [task for task in env.tasks() if task.split == "dev" and not task.known_bad]
    tasks = choose_tasks(dev, params.evolve.gate.tasks, key.run_seed, key.depth, "probe")
    collect, scenario = params.collect, {task.task_id: task.scenario_id for task in tasks}

    def requests(arm: int, tasks: Sequence[Task], dropped: str = "") -> list[Request]:
        def request(task: Task, sample: int) -> Request:
            at = task.task_id, sample
            id_, seed = key.rollout_id("probe", arm, *at), key.seed("probe", 0, *at)
            return Request(id_, task, sample, seed, collect.mode, dropped)

        return [request(task, sample) for task in tasks for sample in range(SAMPLES)]

    arms = requests(0, tasks)
    for arm, item in enumerate(added, 2):
        arms += requests(arm, [task for task in tasks if shows(env, task, new, item, collect.mode)], item.id)
    limits = Limits(collect.max_action_tokens, collect.context)
    rollouts = play(env, policy, arms, new, limits, collect.temperature)
    rollouts += play(env, policy, requests(1, tasks), old, limits, collect.temperature)
    judged = judge(env, rollouts, params.diagnose.priority)
    with_all, without = judged[: len(tasks) * SAMPLES], judged[len(arms) :]
    rows = [_decision(key.id, None, with_all, without, scenario)]
    for item in added:
        lacking = [j for j in judged[len(with_all) : len(arms)] if j.rollout.dropped == item.id]
        rows.append(_decision(key.id, item, with_all, lacking, scenario))
    harmful = {row["item"]: row for row in rows if row["decision"] == "rollback" and row["item"] != ALL}
    if rows[0]["decision"] == "rollback" and not harmful:
        harmful = {item.id: rows[0] for item in added}
        rows = [{**row, "decision": "rollback"} for row in rows]
    state, log = new, ChangeLog(key.id, counter_of(policy))
    for id_, row in harmful.items():
        reason = f"gate: {row['uplift']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}] on {row['n']} pairs"
        state = roll_back(state, [id_], reason, log)
    tokens = sum(sum(j.rollout.tokens.loss_mask) for j in judged)
    return Gated(state, log.rows, rows, {"rollouts": len(judged), "tokens": tokens})


def roll_back(state: InterfaceState, item_ids: Collection[str], reason: str, log: ChangeLog) -> InterfaceState:
    """The state without these active items; they are not proposed again."""
    items = []
    for item in state.items:
        if item.id in item_ids and item.status == "active":
            item = replace(item, status="rolled_back", evidence={**item.evidence, "out": "gate"})
            log.add("rollback", item, reason)
        items.append(item)
    return replace(state, items=tuple(items))


def shows(env: Environment, task: Task, state: InterfaceState, item: Item, mode: Mode) -> bool:
    """Whether a rollout of the task can look different for the item."""
    last = len(task.turns) - 1
    if item.where == "feedback":
        return shows_feedback(mode)
    if item.where == "docs" and mode == "feedback_only":  # after an error of its tool, see seal.interface.feedback
        return any(f"{item.target}.".startswith(f"{doc.name}.") for doc in env.docs(task, last))
    full, lacking = (View(env, task, state, mode, dropped) for dropped in ("", item.id))
    differs = full.docs(0) != lacking.docs(0) or full.hints() != lacking.hints()
    return differs or any(full.revealed(turn) != lacking.revealed(turn) for turn in range(1, last + 1))


def _effect(
    a: Sequence[Judged], b: Sequence[Judged], scenario: Mapping[str, str], outcome: Callable[[Judged], float]
) -> Estimate:
    """Of an outcome: a minus b, paired by task and sample."""

    def by_key(judged: Sequence[Judged]) -> dict[tuple[str, int], float]:
        return {(j.rollout.task_id, j.rollout.sample): float(outcome(j)) for j in judged if j.usable}

    clusters = {(j.rollout.task_id, j.rollout.sample): scenario[j.rollout.task_id] for j in a}
    return paired_difference(by_key(a), by_key(b), clusters)


def _decision(
    round_id: str, item: Item | None, a: Sequence[Judged], b: Sequence[Judged], scenario: Mapping[str, str]
) -> dict[str, Json]:
    progress = _effect(a, b, scenario, lambda j: j.progress).row()
    success = _effect(a, b, scenario, lambda j: j.success).row()
    id_, kind, target = (item.id, item.kind, item.target) if item else (ALL, "", "")
    decision = "rollback" if progress["n"] and progress["high"] < 0 else "keep" if progress["n"] else "untested"
    effect = {"uplift": progress["mean"], "low": progress["low"], "high": progress["high"]}
    counts = {"uplift_success": success["mean"], "n": progress["n"], "scenarios": progress["clusters"]}
    return {"round": round_id, "item": id_, "kind": kind, "target": target, "decision": decision, **effect, **counts}
