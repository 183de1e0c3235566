"""What a tau2 task costs: `python benchmarks/bench_tau2.py [--tasks 0] [--passes 3]`.

Plays and judges the official actions of every task twice, side by side: with the package's own environment and
evaluators (stock), and with SEAL's sessions and verifier, after one pass that fills its caches. Prints the median
milliseconds a task and the middle half of them, the ratio of the medians with its target, and both sums of rewards.
The first pass alone (cold) holds loading a domain and every task's official end state.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Sequence

from tau2_official import official_reward

from seal.env.tau2 import Tau2Env
from seal.env.tau2.reward import conversation_reward

TARGET = 5.0
ARMS = (("retail", "scripted"), ("airline", "scripted"), ("telecom", "scripted"), ("telecom", "solo"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=0, help="of each domain (0: all)")
    parser.add_argument("--passes", type=int, default=3)
    args = parser.parse_args()
    for domain, user in ARMS:
        _compare(domain, user, args.tasks, args.passes)


def _compare(domain: str, user: str, n: int, passes: int) -> None:
    started = time.perf_counter()
    env = Tau2Env(domain=domain, user=user)
    tasks = env.tasks()[: n or None]
    rewards = [conversation_reward(env, task, task.turns[0].gold).value for task in tasks]
    cold = 1000 * (time.perf_counter() - started) / len(tasks)
    ours, stock, theirs = [], [], []
    for _ in range(passes):  # in turns, so that a busy machine slows both
        for task in tasks:
            seconds, _ = _timed(lambda task=task: conversation_reward(env, task, task.turns[0].gold).value)
            ours.append(seconds)
            seconds, reward = _timed(lambda task=task: official_reward(task, task.turns[0].gold))
            stock.append(seconds)
            theirs.append(reward)
    ratio = statistics.median(stock) / statistics.median(ours)
    verdict = "ok" if ratio >= TARGET else "SLOW"
    print(f"{domain} {user}: {len(tasks)} tasks, {passes} passes, cold {cold:.1f} ms a task")
    print(f"  stock {_spread(stock)}   seal {_spread(ours)}   ratio {ratio:.1f}, target {TARGET:g}   {verdict}")
    print(f"  rewards: stock {sum(theirs) / passes:g}, seal {sum(rewards):g} of {len(tasks)}", flush=True)


def _timed(work: Callable[[], float]) -> tuple[float, float]:
    started = time.perf_counter()
    value = work()
    return time.perf_counter() - started, value


def _spread(seconds: Sequence[float]) -> str:
    low, middle, high = (1000 * q for q in statistics.quantiles(seconds, n=4))
    return f"{middle:.2f} ms [{low:.2f}, {high:.2f}]"


if __name__ == "__main__":
    main()
