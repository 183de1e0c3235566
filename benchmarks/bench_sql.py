"""How fast SQL answers: `python benchmarks/bench_sql.py [--rows 10_000_000] [--rounds 50] [--repeats 7]`.

Prints a line a question: median seconds, lowest to highest, and its target. "opened": opening the workspace included,
as `seal sql` does. Tables are made up, in a folder that goes again; the first answer to each question is not counted.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from seal.core.labels import Label
from seal.store.parquet import write_parquet
from seal.store.schemas import TABLES
from seal.workspace.views import ask, connect

DISTRIBUTION = "SELECT round, label, count(*) AS n FROM diagnoses GROUP BY ALL"
QUESTIONS = {
    "label distribution": (0.5, DISTRIBUTION),
    "labels of one round": (0.1, "SELECT label, count(*) AS n FROM diagnoses WHERE round = 'r3' GROUP BY ALL"),
    "root failures by tool and parameter": (
        1.0,
        'SELECT tool, parameter, label, count(*) AS n FROM diagnoses WHERE "primary" AND root GROUP BY ALL',
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000, help="of diagnoses, over all rounds")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    lineage = [(f"r{i}", f"r{i - 1}" if i else "", i) for i in range(args.rounds)]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, _, i in lineage:
            path = root / "data" / "rounds" / name / "diagnose" / "diagnoses.parquet"
            write_parquet(path, _diagnoses(name, args.rows // args.rounds, i))
        con = connect(root, lineage)
        print(f"{args.rows:,} rows over {args.rounds} rounds")
        for name, (target, sql) in QUESTIONS.items():
            _say(name, target, [_seconds(lambda sql=sql: ask(con, sql)) for _ in range(args.repeats + 1)][1:])
        whole = [_seconds(lambda: ask(connect(root, lineage), DISTRIBUTION)) for _ in range(args.repeats + 1)][1:]
        _say("label distribution, opened", 1.0, whole)


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
    columns = {
        "rollout_id": pa.array([f"{i:016x}" for i in ids.tolist()]),
        "turn": pa.array(np.arange(n, dtype=np.int32) % 3),
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


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _say(name: str, target: float, seconds: list[float]) -> None:
    middle = statistics.median(seconds)
    verdict = "ok" if middle <= target else "SLOW"
    spread = f"({min(seconds):.3f} to {max(seconds):.3f})"
    print(f"{name:<40} {middle:8.3f} s {spread:>18}   target {target:g} s   {verdict}", flush=True)


if __name__ == "__main__":
    main()
