"""Our verdicts beside BFCL's own, on trajectories of every kind: `python benchmarks/agree_verify.py [--seed 0]`.

Each of the 800 tasks gives one trajectory of each kind of benchmarks/trajectories.py (where it can). Compared are the
verdict, the first failing turn and the error type. Official: multi_turn_checker in this process, under a model name of
its own for each trajectory. Its worlds still share what the environment modules hold (defaults of parameters, records
of long contexts), with each other and between policy and reference. So where the two differ, the official executor runs
the policy's calls in one fresh process and the reference in another, and the official rules are applied to what both
give. A difference that is gone there is a defect of the official state ("shared"); one that stays is ours, and the exit
code is 1. With --state a run goes on where it was interrupted. Writes results/verify_agreement.csv, a row a kind, and
results/verify_disagreements.csv, a row a difference.
"""

import argparse
import csv
import importlib
import json
import marshal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import localcontext
from pathlib import Path

import mpmath
from trajectories import CHANGES, Turns, flat, trajectory

from seal.core.types import Json, Task
from seal.env import load_env
from seal.env.base import Environment
from seal.env.bfcl.checker import CHECKER, EXECUTOR, official_input, verdict_of
from seal.env.bfcl.values import public_state
from seal.verify.turns import verify

ROOT = Path(__file__).parents[1]
COUNTS = ("kind", "trajectories", "valid", "agree", "shared", "unexplained")
DIFFERENCES = ("task", "kind", "seed", "ours", "official", "apart")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth task")
    parser.add_argument("--kinds", default=",".join(CHANGES), metavar="A,B")
    parser.add_argument("--state", type=Path, metavar="FILE", help="where a run that was interrupted goes on")
    parser.add_argument("--out", type=Path, default=ROOT / "results")
    parser.add_argument("--side", choices=("policy", "reference"), help="run one side of one trajectory, and end")
    parser.add_argument("--task", metavar="ID")
    args = parser.parse_args()
    env = load_env("bfcl")
    if args.side:
        task = next(task for task in env.tasks() if task.task_id == args.task)
        sys.stdout.buffer.write(marshal.dumps(side(env, task, args.kinds, args.seed, args.side)))
        return 0
    rows = compare(env, args.kinds.split(","), args.every, args.seed, args.state)
    counts = table(rows, args.kinds.split(","))
    for row in counts:
        print(*(f"{row[name]!s:>{18 if name == 'kind' else 13}}" for name in COUNTS))
    _write(args.out / "verify_agreement.csv", COUNTS, counts)
    _write(args.out / "verify_disagreements.csv", DIFFERENCES, [row for row in rows if row["ours"] != row["official"]])
    return int(counts[-1]["unexplained"] > 0)


def compare(env: Environment, kinds: Sequence[str], every: int, seed: int, state: Path | None) -> list[Json]:
    """A row a trajectory: task, kind, seed, ours and official as text, apart where they differ."""
    kept = state.read_text().splitlines() if state and state.exists() else []
    done = {(row["task"], row["kind"], row["seed"]): row for row in map(json.loads, kept)}
    rows = []
    for number, task in enumerate(env.tasks()[::every]):
        new = []
        for kind in kinds:
            if row := done.get((task.task_id, kind, seed)):
                rows.append(row)
            elif (turns := trajectory(env, task, kind, seed)) is not None:
                new.append(_row(env, task, kind, seed, turns))
        rows += new
        if state and new:
            with state.open("a") as file:
                file.writelines(f"{json.dumps(row)}\n" for row in new)
        if number % 100 == 99:
            print(f"{number + 1} tasks, {len(rows)} trajectories", file=sys.stderr, flush=True)
    return rows


def table(rows: Sequence[Json], kinds: Sequence[str]) -> list[Json]:
    """A row a kind and one of all; columns COUNTS."""
    counts = []
    for kind in (*kinds, "all"):
        some = [row for row in rows if kind in ("all", row["kind"])]
        agree = sum(row["ours"] == row["official"] for row in some)
        shared = sum(row["ours"] != row["official"] and row["ours"] == row["apart"] for row in some)
        valid = sum(json.loads(row["ours"])["valid"] for row in some)
        counts.append(
            dict(zip(COUNTS, (kind, len(some), valid, agree, shared, len(some) - agree - shared), strict=True))
        )
    return counts


def ours(env: Environment, task: Task, turns: Turns) -> dict[str, Json]:
    """Our verdicts as one in the official form."""
    calls = flat(turns)
    for verdict in verify(env, task, calls):
        if not verdict.valid:
            if not calls[verdict.turn]:
                kind = "multi_turn:empty_turn_model_response"
            else:
                kind = (
                    "multi_turn:execution_response_mismatch"
                    if verdict.state_ok
                    else "multi_turn:instance_state_mismatch"
                )
            return {"valid": False, "error_type": kind, "turn": verdict.turn}
    return {"valid": True, "error_type": None, "turn": None}


def official(task: Task, turns: Turns) -> dict[str, Json]:
    """The official verdict under a model name that no other trajectory has, its instances taken away again."""
    with localcontext(), mpmath.workprec(mpmath.mp.prec):
        try:
            return verdict_of(checker()(*official_input(task, turns), "agree"))
        finally:
            remove_instances("agree")


def checker() -> Callable[..., dict]:
    """BFCL's multi_turn_checker as it is."""
    return importlib.import_module(CHECKER).multi_turn_checker


def remove_instances(prefix: str) -> int:
    """Take the official instances of model names with a prefix out of the module they stay in; how many there were."""
    kept = vars(importlib.import_module(EXECUTOR))
    names = [name for name in kept if name.startswith(prefix) and name.endswith("_instance")]
    for name in names:
        del kept[name]
    return len(names)


def side(env: Environment, task: Task, kind: str, seed: int, which: str) -> list[tuple[list[str], Json]]:
    """What the official executor gives for one side: results and public state after every turn, nothing else run."""
    played, gold, entry, category = official_input(task, trajectory(env, task, kind, seed))
    run, told = importlib.import_module(EXECUTOR).execute_multi_turn_func_call, []
    for steps in played if which == "policy" else [[step] for step in gold]:
        given = (entry["initial_config"], entry["involved_classes"], which, task.task_id, category == "long_context")
        results = [result for step in steps for result in run(step, *given)[0]]
        told.append((results, {name: public_state(part) for name, part in run([], *given)[1].items()}))
    return told


def apart(env: Environment, task: Task, kind: str, seed: int) -> dict[str, Json]:
    """The official rules on both sides, each run in a fresh process of its own."""
    command = [sys.executable, __file__, "--task", task.task_id, "--kinds", kind, "--seed", str(seed), "--side"]
    policy, reference = (
        marshal.loads(subprocess.run([*command, which], capture_output=True, check=True).stdout)
        for which in ("policy", "reference")
    )
    said, so_far = trajectory(env, task, kind, seed), Counter()
    for turn, ((results, state), (wanted, expected)) in enumerate(zip(policy, reference, strict=True)):
        so_far.update(results)
        if not task.turns[turn].gold:
            continue
        if not said[turn]:
            return {"valid": False, "error_type": "multi_turn:empty_turn_model_response", "turn": turn}
        if state != expected:
            return {"valid": False, "error_type": "multi_turn:instance_state_mismatch", "turn": turn}
        if Counter(wanted) - so_far:
            return {"valid": False, "error_type": "multi_turn:execution_response_mismatch", "turn": turn}
    return {"valid": True, "error_type": None, "turn": None}


def _row(env: Environment, task: Task, kind: str, seed: int, turns: Turns) -> Json:
    row = {"task": task.task_id, "kind": kind, "seed": seed}
    row |= {"ours": json.dumps(ours(env, task, turns)), "official": json.dumps(official(task, turns))}
    if row["ours"] != row["official"]:
        row["apart"] = json.dumps(apart(env, task, kind, seed))
    return row


def _write(path: Path, columns: Sequence[str], rows: Sequence[Json]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    sys.exit(main())
