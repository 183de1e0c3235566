"""`seal experiment <name>`: the same rounds under several arms and seeds, resumable."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from seal.commands.places import add_root, add_settings, folder_place
from seal.core.errors import ParamError
from seal.core.types import Task
from seal.experiment.arms import ARMS, EXPERIMENTS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", choices=tuple(EXPERIMENTS), help="which arms to compare")
    parser.add_argument("--seeds", type=int, default=7, help="runs per arm (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds per run (default: %(default)s)")
    parser.add_argument("--arms", help=f"others, the first to compare with: {', '.join(ARMS)}")
    parser.add_argument("--preset", help="over params.yaml, without changing it: presets/<PRESET>.yaml, or a file")
    parser.add_argument("--start", help="start of the preset, or of params.yaml (default: its first)")
    measured = "transfer: the environments to measure on, comma-separated (of params.yaml, or by name)"
    parser.add_argument("--to", default="", help=measured)
    add_settings(parser, "--set", "under what makes an arm, such as train.steps=5")
    add_settings(parser, "--env", "of the start's environment, as in told=0.5")
    parallel = "processes, one run each at a time (default: %(default)s)"
    parser.add_argument("--workers", type=int, default=1, help=parallel)
    parser.add_argument("--out", type=Path, help="where runs are kept (default: .seal/experiments/<start>)")
    committed = "a folder to commit (from here): what it holds is not run again, all goes there"
    parser.add_argument("--results", type=Path, help=committed)
    add_root(parser)


def run(args: argparse.Namespace) -> int:
    from seal.env import load_env
    from seal.experiment.jobs import check_jobs, plan
    from seal.experiment.results import restore
    from seal.experiment.runs import records, run_jobs
    from seal.settings.params import load_params
    from seal.workspace.params_file import as_typed, params_with_preset, parse_settings, read_preset

    for option, n in (("--seeds", args.seeds), ("--rounds", args.rounds), ("--workers", args.workers)):
        if n < 1:
            raise ParamError(option, n, "use 1 or more")
    arms = list(dict.fromkeys(arm.strip() for arm in (args.arms or "").split(",") if arm.strip()))
    places = list(dict.fromkeys(name.strip() for name in args.to.split(",") if name.strip()))
    if args.arms is not None and not arms:
        raise ParamError("--arms", args.arms or "empty", f"name some of: {', '.join(ARMS)}")
    path, first = args.root / "params.yaml", ""
    if args.preset:
        params, first = params_with_preset(path, read_preset(args.root, args.preset))
    else:
        params = load_params(path)
    start = (first or next(iter(params.starts), "")) if args.start is None else args.start
    change, env = parse_settings(args.set), parse_settings(args.env, "--env")
    of_env = f"envs.{params.starts[start].env}" if start in params.starts else ""
    with as_typed("--set", args.set, "rounds.new"), as_typed("--env", args.env, of_env):
        jobs = plan(params, arms or args.name, args.seeds, args.rounds, start, change, env)
        check_jobs(jobs)
    out = args.out or args.root / ".seal" / "experiments" / start
    for option, place in (("--out", out), ("--results", args.results)):
        folder_place(option, place)
    say = partial(print, file=sys.stderr, flush=True)
    if bool(places) != (args.name == "transfer"):
        raise ParamError("--to", args.to or "nothing", "transfer needs it, as in --to compliance; no other takes it")
    if args.name == "transfer":
        from seal.commands.transfer import transfer

        return transfer(params, jobs, out, places, args.workers, args.results, say)
    tasks = {task.task_id: task for task in load_env(jobs[0].env, **jobs[0].env_options).tasks()}
    wanted = {(job.arm, job.seed, depth): job.digest(depth) for job in jobs for depth in range(args.rounds + 1)}
    if args.results and (n := restore(args.results, out, wanted, tasks)):
        say(f"{n} rounds of runs taken from {args.results}")
    try:
        run_jobs(jobs, out, args.workers, say)
    finally:  # what is finished is worth having, also where the rest was interrupted
        if found := records(jobs, out):
            _show(tasks, jobs[0].rounds[0]["evaluate"]["split"], found, args.results)
    return 0


def _show(tasks: Mapping[str, Task], split: str, found: Sequence[Mapping[str, Any]], results: Path | None) -> None:
    """Print the table, and write the results."""
    from seal.experiment.results import write_results
    from seal.experiment.summary import summarise, whole
    from seal.report.experiments import experiment_table, label_table, write_curves

    scenarios = {id_: task.scenario_id for id_, task in tasks.items()}
    whole_rounds = whole((r["arm"], r["seed"], r["depth"]) for r in found)
    shown = [r for r in found if (r["arm"], r["seed"], r["depth"]) in whole_rounds]
    rows = summarise(shown, scenarios, split)
    print(f"{experiment_table(rows)}\n\n{label_table(shown)}")
    if left := len(found) - len(shown):
        print(f"note: {left} rounds of interrupted lines are not in the tables", file=sys.stderr)
    if results:
        write_results(results, rows, found, tasks)
        write_curves(results / "curves.svg", rows)
        print(f"results: {results}")
