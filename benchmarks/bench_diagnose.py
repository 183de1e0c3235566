"""How fast the diagnosis is, on one core: `python benchmarks/bench_diagnose.py [--tasks 200] [--repeats 5]`.

Rollouts are gold programs with injected faults, one fault each, of all kinds. Two figures an environment, in user turns
a second of CPU, median with lowest to highest. *classify*: labels from stored evidence; what a turn shows is there, and
nothing is run again. *whole*: labels from raw trajectories and verdicts, with everything that is run again to tell a
root from a consequence. `--profile` prints where the time of the second goes.
"""

import argparse
import cProfile
import pstats
import random
import statistics
import time
from collections.abc import Callable

from seal.diagnose import diagnose
from seal.diagnose import label_rules as rules
from seal.diagnose.diagnosis import Diagnoser
from seal.diagnose.primary_label import primary
from seal.diagnose.proof.inject import Injected, injections
from seal.diagnose.turn_evidence import align
from seal.env import load_env
from seal.env.base import Environment

TARGET = 20_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--env", action="append", choices=("shop", "compliance", "bfcl"))
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--profile", action="store_true")
    args = parser.parse_args()
    for name in args.env or ("shop", "compliance", "bfcl"):
        env = load_env(name)
        tasks = random.Random(0).sample([task for task in env.tasks() if not task.known_bad], args.tasks)
        played = list(injections(env, tasks))
        evidence = [found for i in played for found in _evidence(env, i)]
        turns = sum(len(i.task.turns) for i in played)
        failing = f"{len(evidence):,} failing turns"
        _say(
            f"{name}, classify {failing}", len(evidence), args.repeats, lambda found=evidence: _classify(found), TARGET
        )
        _say(f"{name}, whole {turns:,} turns", turns, args.repeats, lambda e=env, p=played: _whole(e, p))
        if args.profile:
            with cProfile.Profile() as profile:
                _whole(env, played)
            pstats.Stats(profile).sort_stats("cumulative").print_stats(25)


def _evidence(env: Environment, injected: Injected) -> list:
    """What the rules look at in each failing turn that is explained."""
    diagnoser = Diagnoser(env, injected.task, injected.rollout, injected.verdicts)
    failing = [verdict.turn for verdict in injected.verdicts if not verdict.valid]
    return [diagnoser.evidence(turn) for turn in failing]


def _classify(evidence: list) -> None:
    for found in evidence:
        primary(rules.explain(align(found)))


def _whole(env: Environment, played: list[Injected]) -> None:
    for i in played:
        diagnose(env, i.task, i.rollout, i.verdicts)


def _say(name: str, n: int, repeats: int, work: Callable[[], None], target: float = 0.0) -> None:
    work()
    rates = sorted(n / _seconds(work) for _ in range(repeats))
    middle = statistics.median(rates)
    goal = f"   target {target:,}   {'ok' if middle >= target else 'SLOW'}" if target else ""
    print(f"{name:<44} {middle:10,.0f} turns/s ({rates[0]:,.0f} to {rates[-1]:,.0f}){goal}", flush=True)


def _seconds(work: Callable[[], None]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    main()
