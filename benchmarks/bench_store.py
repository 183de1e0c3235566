"""How fast tables are: `python benchmarks/bench_store.py [--rollouts 5000]`; for questions see bench_sql.py.

Prints a line a figure with its target: writing and reading trajectories with their tokens, in a folder that goes again.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from seal.core.types import Call, Result, Rollout, Step, Tokens
from seal.store.tables import rollouts_of, rows_of_rollouts, write_table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rollouts", type=int, default=5000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        _rollouts(Path(folder) / "played", args.rollouts)


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
