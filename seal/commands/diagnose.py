"""`seal diagnose`: labels for any log, the proof that labels are right, and what their priority decides."""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seal.commands.output import add_format
from seal.commands.places import add_root, file_place
from seal.core.errors import ParamError

if TYPE_CHECKING:
    from seal.diagnose.proof.score import Row

ENVS = ("shop", "compliance", "bfcl")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--inject", action="store_true", help="score the diagnosis on gold runs with known faults")
    what.add_argument("--input", metavar="FILE", type=Path, help="label conversations: messages as JSONL or Parquet")
    what.add_argument("--sensitivity", action="store_true", help="what each priority does to profile and weights")
    parser.add_argument("--env", choices=ENVS, help="one environment only (default: all built in)")
    parser.add_argument("--n", type=int, default=100, help="tasks per environment, 0 for all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the faults (default: %(default)s)")
    parser.add_argument("--output", metavar="FILE", type=Path, help="write labels, or the counts of --inject, there")
    add_format(parser)
    parser.add_argument("--round", help="whose rollouts --sensitivity reads (default: the last one collected)")
    add_root(parser, " of --sensitivity")


def run(args: argparse.Namespace) -> int:
    """Exit code 0, or what the raised SealError says."""
    if args.n < 0:
        raise ParamError("--n", args.n, "a number of tasks, 0 for all")
    if args.sensitivity and args.output:
        raise ParamError("--output", args.output, "--sensitivity prints its tables alone: leave it out")
    if args.input:
        from seal.commands.label_log import label_file

        return label_file(args.input, args.format, args.output, args.limit)
    if args.sensitivity:
        from seal.commands.sensitivity import print_sensitivity

        print_sensitivity(args.root, args.round, args.env)
        return 0
    output = file_place("--output", args.output)
    return inject([args.env] if args.env else ENVS, args.n, args.seed, output)


def inject(names: Sequence[str], n: int, seed: int, output: Path | None = None) -> int:
    """Print the confusion matrix and figures of each environment and of all, and write the counts."""
    from seal.diagnose.proof.score import summary, write_rows

    rows = []
    for name in names:
        found = proof(name, n, seed)
        print(f"{name}: {summary(found)}\n", flush=True)
        rows += found
    if len(names) > 1:
        print(f"all: {summary(rows)}")
    if output:
        write_rows(output, rows)
    return 0


def proof(name: str, n: int, seed: int) -> "list[Row]":
    """Counts of every kind of fault on `n` tasks (0: all), those whose reference is bad left out: of a fault there the
    right label is gold_error."""
    from seal.diagnose.proof.inject import injections, judge, pairs
    from seal.diagnose.proof.score import tally
    from seal.env import load_env

    env = load_env(name)
    tasks = [task for task in env.tasks() if not task.known_bad]
    random.Random(seed).shuffle(tasks)
    tasks = tasks[: n or len(tasks)]
    return tally([*(judge(env, injected) for injected in injections(env, tasks, seed)), *pairs(env, tasks, seed)])
