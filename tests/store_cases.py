"""A small finished tree of rounds, r0 -> r1 -> r2, made by the real rooms and writers with scripted policies."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from evaluations import evaluated

from seal.core.judged import Judged
from seal.core.labels import DEFAULT_PRIORITY
from seal.core.seeds import RoundKey
from seal.diagnose.judge import judge
from seal.diagnose.profile import profile
from seal.env.shop import ShopEnv
from seal.evaluate.suite import write_evaluation
from seal.evolve.next_interface import next_interface
from seal.interface.state import InterfaceState
from seal.policy.scripted import FaultyPolicy
from seal.rollout.collect import Groups, collect
from seal.settings.play import CollectParams, EvaluateParams
from seal.settings.rounds import Defaults, Round
from seal.settings.train import TrainParams
from seal.store.files import write_json
from seal.store.judged import write_judged
from seal.store.tables import (
    rows_of_items,
    rows_of_tasks,
    write_table,
)
from seal.train.reweight import Factors, turn_weights

LINEAGE = [("r0", "", 0), ("r1", "r0", 1), ("r2", "r1", 2)]
COLLECT = CollectParams(tasks=6, group_size=6, evolved=4, item_dropout=0.7)
PARAMS = Round(parent="r0", env="shop", **dict(Defaults(collect=COLLECT)))
RATES = {"r0": 0.6, "r1": 0.4, "r2": 0.2}  # of faults: each round's policy is better than its parent's


@cache
def env() -> ShopEnv:
    return ShopEnv(seed=0, train=12, dev=3, test=6)


def write_played(folder: Path, judged: Sequence[Judged], round_id: str, phase: str, step: int = 0) -> None:
    write_judged(folder, judged, round_id, phase, train_step=step, tasks=env().tasks())


def write_tree(root: Path) -> Path:
    """The workspace's data folder, complete but for policies."""
    write_table(root / "data" / "tasks" / "shop.parquet", "tasks", rows_of_tasks(env().tasks()))
    state, found = InterfaceState(), []
    for round_id, parent, depth in LINEAGE:
        folder = root / "data" / "rounds" / round_id
        if parent:
            state, found = _write_round(folder, round_id, parent, depth, state, found)
        else:
            write_table(folder / "diagnose" / "profile.parquet", "profile", [])
            write_table(folder / "train" / "replay.parquet", "replay", [])
        _write_evaluation(folder, round_id, state)
        if parent:
            write_table(folder / "evaluate" / "validation.parquet", "validation", [])
    return root


def _write_round(folder: Path, round_id: str, parent: str, depth: int, state: InterfaceState, before: list[dict]):
    policy = FaultyPolicy(RATES[parent])
    judged = judge(env(), collect(env(), policy, state, COLLECT, RoundKey(round_id, depth, 0)), DEFAULT_PRIORITY)
    write_played(folder / "collect", judged, round_id, "collect")
    for stage, tables in (("verify", ("verdicts", "outcomes")), ("diagnose", ("diagnoses",))):
        (folder / stage).mkdir()
        for table in tables:
            (folder / "collect" / f"{table}.parquet").rename(folder / stage / f"{table}.parquet")
    found = profile(judged, {task.task_id: task.category for task in env().tasks()}, before)
    write_table(folder / "diagnose" / "profile.parquet", "profile", found, round=round_id)
    evolved = next_interface(env(), policy, state, judged, found, PARAMS, RoundKey(round_id, depth, 0))
    items = rows_of_items(evolved.state.items, evolved.state.hash, round_id, evolved.uplifts)
    write_table(folder / "interface" / "interface_items.parquet", "interface_items", items)
    write_table(folder / "interface" / "changes.parquet", "changes", evolved.changes)
    write_table(folder / "interface" / "decisions.parquet", "decisions", evolved.decisions)
    fresh = collect(env(), policy, evolved.state, COLLECT, RoundKey(round_id, depth, 0), Groups("train", 1))
    trained = judge(env(), fresh, DEFAULT_PRIORITY)
    write_played(folder / "train", trained, round_id, "train", 1)
    write_table(folder / "train" / "weights.parquet", "weights", _weights(trained, round_id))
    write_table(folder / "train" / "replay.parquet", "replay", [])
    return evolved.state, found


def _write_evaluation(folder: Path, round_id: str, state: InterfaceState) -> None:
    policy = FaultyPolicy(RATES[round_id])
    evaluation = evaluated(env(), policy, state, EvaluateParams(), round_id)
    write_evaluation(folder / "evaluate", evaluation, round_id, env().tasks())
    write_json(folder / "metrics.json", {"round": round_id, "policy_hash": policy.hash})


def _weights(judged: Sequence[Judged], round_id: str) -> list[dict]:
    rows = []
    for j in judged:
        tokens = dict.fromkeys(range(len(j.verdicts)), 1)
        for row in turn_weights(j, 1.0 if j.success else -1.0, tokens, TrainParams(), Factors()):
            values = {"turn": row.turn, "advantage": row.advantage, "utility": row.utility}
            key = {"round": round_id, "phase": "train", "train_step": 1, "rollout_id": row.rollout_id}
            rows.append({**key, **values, "weight": row.weight, "reason": row.reason})
    return rows
