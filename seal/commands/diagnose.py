"""`seal diagnose`: labels for any log, and the proof that labels are right."""

import argparse
import random
import sys
from collections import Counter
from pathlib import Path

from seal.core.errors import ArtifactError, ParamError

ENVS = ("shop", "compliance", "bfcl")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--inject", action="store_true", help="score the diagnosis on gold runs with known faults")
    what.add_argument("--input", metavar="FILE", type=Path, help="label conversations of an OpenAI-style JSONL file")
    parser.add_argument("--env", choices=ENVS, help="inject into one environment only (default: all built in)")
    parser.add_argument("--n", type=int, default=100, help="tasks per environment, 0 for all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the faults (default: %(default)s)")


def run(args: argparse.Namespace) -> int:
    """Exit code 0, or what the raised SealError says."""
    if args.n < 0:
        raise ParamError("--n", args.n, "a number of tasks, 0 for all")
    if args.input:
        return label_file(args.input)
    for name in [args.env] if args.env else ENVS:
        inject(name, args.n, args.seed)
    return 0


def inject(name: str, n: int, seed: int) -> None:
    """Print the confusion matrix and figures of one environment."""
    from seal.diagnose.inject import injections, judge, pairs
    from seal.diagnose.score import score, table
    from seal.env import load_env

    env = load_env(name)
    tasks = [task for task in env.tasks() if not task.known_bad]  # of a bad reference, gold_error is the right label
    random.Random(seed).shuffle(tasks)
    tasks = tasks[: n or len(tasks)]
    cases = [judge(env, injected) for injected in injections(env, tasks, seed)]
    result = score(cases)
    both = [pair.both for pair in pairs(env, tasks, seed)]
    controls = sum(not case.injected.expected for case in cases)
    print(f"{name}: {len(cases)} trajectories of {len(tasks)} tasks, {result.n} faults that flip a verdict")
    print(table(result))
    print(f"  macro-F1 of the primary label   {result.macro_f1:.4f}")
    print(f"  all expected labels present     {result.labels_present:.4f}")
    print(f"  right turn found                {result.turn_found:.4f}")
    print(f"  right turns blamed              {result.blamed:.4%}")
    if both:
        print(f"  two faults, both labels         {sum(both) / len(both):.4f}  ({len(both)} pairs)")
    print(f"  flip no verdict, counted apart  {sum(result.apart.values())}, controls without a fault {controls}\n")


def label_file(path: Path) -> int:
    """Print a line per labelled turn and a summary; malformed lines are told on stderr and passed over."""
    from seal.diagnose.log import Malformed, diagnose_log, read_log

    try:
        handle = path.open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ArtifactError("conversation log", f"{path}: {error.strerror}", "give a readable JSONL file") from None
    counts: Counter[str] = Counter()
    skipped = 0
    with handle:
        for number, talk in read_log(handle):
            if isinstance(talk, Malformed):
                skipped += 1
                print(f"line {number}: skipped, {talk.reason}", file=sys.stderr)
                continue
            for row in diagnose_log(talk):
                counts[row.label] += row.primary
                where = " ".join(filter(None, (row.detail, f"{row.tool}.{row.parameter}".strip("."))))
                mark = "*" if row.primary else " "
                print(f"line {number} turn {row.turn} {mark} {row.label:<20} {row.confidence:.2f} {where}".rstrip())
    turns = sum(counts.values())
    if not turns:
        remedy = 'give one conversation a line: {"messages": [...], "tools": [...]}'
        raise ArtifactError("conversation log", f"{path}: no turn to label, {skipped} lines skipped", remedy)
    print(f"\n{turns} turns, {skipped} lines skipped")
    for label, n in counts.most_common():
        if n:
            print(f"  {label:<20} {n:>6}  {n / turns:6.1%}")
    return 0
