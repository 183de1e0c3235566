"""How fast the store is: `python benchmarks/bench_store.py [--rows 10_000_000] [--rollouts 5000]`.

Prints a line a figure with its target: the label distribution over all rounds, one round of it, a failing tool's
parameters, and writing and reading trajectories with their tokens. Tables are made up, in a folder that goes again.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from seal.core.labels import Label
from seal.core.types import Call, Result, Rollout, Step, Tokens
from seal.store.parquet import write_parquet
from seal.store.schemas import TABLES
from seal.store.tables import rollouts_of, rows_of_rollouts, write_table
from seal.store.views import ask, connect

ROUNDS = 10
QUESTIONS = {
    "labels by round": (0.5, "SELECT round, label, count(*) AS n FROM diagnoses GROUP BY ALL"),
    "labels of one round": (0.1, "SELECT label, count(*) AS n FROM diagnoses WHERE round = 'r3' GROUP BY ALL"),
    "root failures by tool and parameter": (
        1.0,
        'SELECT tool, parameter, label, count(*) AS n FROM diagnoses WHERE "primary" AND root GROUP BY ALL',
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="of diagnoses, over ten rounds")
    parser.add_argument("--rollouts", type=int, default=5000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _questions(Path(folder), args.rows)
        _rollouts(Path(folder) / "played", args.rollouts)


def _questions(root: Path, n: int) -> None:
    for i in range(ROUNDS):
        path = root / "data" / "rounds" / f"r{i}" / "diagnose" / "diagnoses.parquet"
        write_parquet(path, _diagnoses(f"r{i}", n // ROUNDS, i))
    con = connect(root, [(f"r{i}", f"r{i - 1}" if i else "", i) for i in range(ROUNDS)])
    for name, (target, sql) in QUESTIONS.items():
        best = min(_seconds(lambda sql=sql: ask(con, sql)) for _ in range(3))
        _say(f"{name}, {n:,} rows", best, target)


def _diagnoses(round_id: str, n: int, seed: int) -> pa.Table:
    """Three turns a rollout, one label a turn."""
    draw = np.random.default_rng(seed)
    words = {
        "round": [round_id],
        "phase": ["collect"],
        "label": [str(label) for label in Label],
        "detail": ["", "enum_value", "missing_parameter", "permission"],
        "tool": [f"tool_{i}" for i in range(40)],
        "parameter": ["", *(f"parameter_{i}" for i in range(60))],
        "evidence": ["{}"],
    }
    ids = np.repeat(draw.integers(0, 2**63, size=n // 3 + 1), 3)[:n]
    turns = np.arange(n, dtype=np.int32) % 3
    columns = {
        "rollout_id": pa.array([f"{i:016x}" for i in ids.tolist()]),
        "turn": pa.array(turns),
        "rank": pa.array(np.zeros(n, np.int32)),
        "primary": pa.array(np.ones(n, bool)),
        "root": pa.array(draw.random(n) < 0.8),
        "step": pa.array(draw.integers(0, 4, size=n, dtype=np.int32)),
        "confidence": pa.array(np.ones(n)),
    }
    for name, known in words.items():
        columns[name] = pa.array(known).take(pa.array(draw.integers(0, len(known), size=n)))
    schema = TABLES["diagnoses"].schema
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _rollouts(folder: Path, n: int) -> None:
    played = [_rollout(i) for i in range(n)]

    def write() -> None:
        for name, rows in rows_of_rollouts(played, "r1", "collect").items():
            write_table(folder / f"{name}.parquet", name, rows)

    _say(f"write {n:,} rollouts with steps and tokens", _seconds(write), 5.0)
    started = time.perf_counter()
    found = rollouts_of(folder)
    _say(f"read {n:,} rollouts with steps and tokens", time.perf_counter() - started, 5.0)
    assert sorted(found, key=lambda r: r.rollout_id) == sorted(played, key=lambda r: r.rollout_id)
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{'size on disk':<56} {size / 1e6:8.1f} MB")


def _rollout(i: int) -> Rollout:
    """Six steps, 150 prompt tokens, 250 completion tokens."""
    draw = random.Random(i)
    steps = tuple(
        Step(
            turn=k // 2,
            step=k % 2,
            text=f"tool_{k} order=ORD-{draw.randrange(10_000)} reason=C{draw.randrange(9)}",
            calls=(Call(f"tool_{k}", {"order": f"ORD-{draw.randrange(10_000)}", "reason": f"C{draw.randrange(9)}"}),),
            results=(Result("ok shipment=SHP-12", "ok shipment=SHP-12"),),
        )
        for k in range(6)
    )
    prompt = tuple(draw.choices(range(700), k=150))
    completion = tuple(draw.choices(range(700), k=250))
    mask = tuple(int(k % 25 < 12) for k in range(250))
    logprobs = tuple(-draw.random() if kept else 0.0 for kept in mask)
    turns = tuple(k // 84 for k in range(250))
    tokens = Tokens(prompt, completion, mask, logprobs, turns, (0,) * 250, prompt, completion, mask)
    return Rollout(f"{i:016x}", f"task_{i // 8}", i % 8, i, "off", "policy", "bare", steps, "finished", "", tokens)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _say(name: str, seconds: float, target: float) -> None:
    verdict = "ok" if seconds <= target else "SLOW"
    print(f"{name:<56} {seconds:8.3f} s   target {target:g} s   {verdict}", flush=True)


if __name__ == "__main__":
    main()
