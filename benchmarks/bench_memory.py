"""BFCL V4 memory, the whole official pass: `python benchmarks/bench_memory.py [--backends kv,rec_sum] [--policy DIR]`.

Plays the 37 prerequisite conversations and then the 155 questions of every backend. Without --policy it prints the
marks that a score is read against: the scripted gold policy, one that says nothing, one that answers "I do not know",
and how many questions the note-taker's memory can answer at all. With --policy it scores a policy folder, which writes
its own memory.
"""

import argparse
import time
from pathlib import Path

from memory_harness import play_memory

from seal.env import load_env
from seal.env.bfcl_memory import SCENARIOS, BfclMemoryEnv
from seal.env.spoken_answers import accepted
from seal.policy import load_policy
from seal.policy.base import Limits, Policy
from seal.policy.scripted import GoldPolicy, ReplayPolicy


class Ignorant(ReplayPolicy):
    """Gives the official words of not knowing, whatever is said."""

    def _text(self, script, step):
        return "{'answer': 'I do not know', 'context': 'I do not know'}"


def held(env: BfclMemoryEnv, backend: str) -> float:
    """Share of questions whose answer stands somewhere in the note-taker's memory."""
    found = []
    for scenario in SCENARIOS:
        text = "\n".join(leaves(env.scripted_memory(backend, scenario)))
        names = env.questions(scenario)
        found += [accepted(text, env.question(backend, name).initial_state["answers"]) for name in names]
    return sum(found) / len(found)


def leaves(value) -> list[str]:
    if isinstance(value, dict):
        return [text for inner in value.values() for text in leaves(inner)]
    return [str(value)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backends", default="kv,rec_sum", help="(default: %(default)s; vector needs its package)")
    parser.add_argument("--policy", type=Path, help="a policy folder, as data/rounds/<round>/policy")
    parser.add_argument("--max-action-tokens", type=int, default=256)
    parser.add_argument("--context", type=int, default=8192)
    parser.add_argument("--scenarios", default=",".join(SCENARIOS), help="(default: %(default)s)")
    args = parser.parse_args()
    env = load_env("bfcl_memory", backends=args.backends.split(","))
    limits = Limits(args.max_action_tokens, args.context)
    policies: dict[str, Policy] = {"gold": GoldPolicy("pythonic"), "silent": ReplayPolicy({}, "pythonic")}
    policies["does not know"] = Ignorant({}, "pythonic")
    if args.policy:
        policies = {str(args.policy): load_policy(args.policy)}
    for name, policy in policies.items():
        started = time.perf_counter()
        run = play_memory(env, policy, limits, scenarios=tuple(args.scenarios.split(",")))
        for backend in env.backends:
            print(f"{name:<16}{backend:<9}{100 * run.score(f'memory_{backend}'):6.1f} %")
        print(f"{'':<16}{len(run.conversations)} conversations, {len(run.right)} questions, ", end="")
        print(f"{time.perf_counter() - started:.2f} s")
    for backend in env.backends if not args.policy else ():
        print(f"{'in the notes':<16}{backend:<9}{100 * held(env, backend):6.1f} %")


if __name__ == "__main__":
    main()
