"""Verdicts per second beside BFCL's own checker: `python benchmarks/bench_verify.py [--tasks 200] [--group 8]`.

Both sides judge the same trajectories in this one process, task by task, `group` of each task, as rollouts come from
training. Official: multi_turn_checker runs every call of the policy and the gold program on fresh worlds, with a model
name of its own for every trajectory (what makes it right at all), on call strings written beforehand, its instances
taken away outside the clock. Ours: seal.verify.turns.verify plays the gold program once a task and runs a class's calls
from the first on that is not the gold program's (seal.env.bfcl.gold_reuse), and judges every turn where the official
one stops at the first failing; its caches are emptied before every repeat, so playing the gold programs is in its time.
Printed are trajectories per second and user turns judged per second. Time is this process's computing time; median of
the repeats, with the lowest and the highest.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable

from agree_verify import checker, official, official_input, remove_instances
from trajectories import CHANGES, flat, trajectory

from seal.core.types import Call, Task
from seal.env import load_env
from seal.env.base import Environment
from seal.env.bfcl import instances, session
from seal.verify import gold, turns
from seal.verify.turns import verify

FAULTS = tuple(kind for kind in CHANGES if kind != "gold")
SETS = {  # the kinds that trajectories are drawn from
    "gold programs": ("gold",),
    "faults of all kinds": FAULTS,
    "half gold, half faults": (*["gold"] * len(FAULTS), *FAULTS),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=200, help="drawn from all 800")
    parser.add_argument("--group", type=int, default=8, help="trajectories of a task")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    env = load_env("bfcl")
    tasks = random.Random(args.seed).sample(env.tasks(), args.tasks)
    for name, kinds in SETS.items():
        found = [(task, turns) for task in tasks for turns in _group(env, task, kinds, args.group, args.seed)]
        for category in ("base", "long_context", ""):
            few = [(task, turns) for task, turns in found if category in ("", task.category)]
            _measure(env, f"{name}, {category or 'all categories'}", few, args.repeats)
    remove_instances("bench")
    for task in tasks:
        verify(env, task, [list(turn.gold) for turn in task.turns])
    print(f"instances in the official module after {len(tasks)} of our verdicts: {remove_instances('')}")


def _group(env: Environment, task: Task, kinds: tuple[str, ...], size: int, seed: int) -> list:
    rng, made = random.Random(f"{seed} {task.task_id}"), []
    while len(made) < size:
        if (turns := trajectory(env, task, rng.choice(kinds), rng.randrange(1000))) is not None:
            made.append(turns)
    return made


def _measure(env: Environment, name: str, found: list[tuple[Task, list[list[list[Call]]]]], repeats: int) -> None:
    inputs = [official_input(task, said) for task, said in found]
    calls = [(task, flat(said)) for task, said in found]
    judged = sum(_turns_judged(task, said) for task, said in found), sum(len(task.turns) for task, _ in found)
    theirs, ours = [], []
    for repeat in range(repeats):
        theirs.append(_seconds(lambda repeat=repeat: _official(inputs, repeat)))
        remove_instances("bench")
        for kept in (gold._replay, instances._start, session._json, turns._cached_digest):
            kept.cache_clear()
        ours.append(_seconds(lambda: _ours(env, calls)))
    print(f"{name}: {len(found)} trajectories, {repeats} repeats")
    for unit, his, mine in (("trajectories", len(found), len(found)), ("user turns", *judged)):
        _say(f"official, {unit}/s", [his / seconds for seconds in theirs], ",.0f")
        _say(f"seal, {unit}/s", [mine / seconds for seconds in ours], ",.0f")
        _say("ratio", [mine / own / (his / seconds) for own, seconds in zip(ours, theirs, strict=True)], ".1f")


def _say(label: str, values: list[float], form: str) -> None:
    print(f"  {label:26} {statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})")


def _turns_judged(task: Task, said: list[list[list[Call]]]) -> int:
    """Up to the first that fails."""
    failing = official(task, said)["turn"]
    return len(task.turns) if failing is None else failing + 1


def _ours(env: Environment, calls: list[tuple[Task, list[list[Call]]]]) -> None:
    for task, said in calls:
        verify(env, task, said)


def _official(inputs: list, repeat: int) -> None:
    check = checker()
    for number, given in enumerate(inputs):
        check(*given, f"bench_{repeat}_{number}")


def _seconds(body: Callable[[], object]) -> float:
    started = time.process_time()
    body()
    return time.process_time() - started


if __name__ == "__main__":
    main()
