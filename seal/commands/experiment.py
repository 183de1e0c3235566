"""`seal experiment <name>`: the same rounds under several arms and seeds, resumable."""

import argparse
import sys
from pathlib import Path

from seal.core.errors import ParamError
from seal.evaluate.arms import ARMS, EXPERIMENTS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", choices=tuple(EXPERIMENTS), help="which arms to compare")
    parser.add_argument("--seeds", type=int, default=7, help="runs per arm (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds per run (default: %(default)s)")
    parser.add_argument("--arms", default="", help=f"other arms, comma-separated, of: {', '.join(ARMS)}")
    parser.add_argument("--start", default="", help="start of params.yaml (default: its first)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="of all arms, such as train.lr=1e-4"
    )
    parser.add_argument(
        "--workers", type=int, default=1, help="processes, one run each at a time (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, help="where runs are kept (default: .seal/experiments/<name>)")
    parser.add_argument("--results", type=Path, help="write the summary tables there too, to be committed")
    parser.add_argument("--root", type=Path, default=Path(), help="the workspace (default: here)")


def run(args: argparse.Namespace) -> int:
    from seal.core.params import load_params
    from seal.env import load_env
    from seal.evaluate.experiment import plan, run_jobs
    from seal.evaluate.summary import summarise
    from seal.report.experiments import experiment_table, write_results
    from seal.store.params_file import parse_settings

    for option in ("seeds", "rounds", "workers"):
        if getattr(args, option) < 1:
            raise ParamError(f"--{option}", getattr(args, option), "use 1 or more")
    arms = [arm for arm in args.arms.split(",") if arm]
    params = load_params(args.root / "params.yaml")
    jobs = plan(params, args.name, args.seeds, args.rounds, arms, args.start, parse_settings(args.set))
    out = args.out or args.root / ".seal" / "experiments" / args.name
    records = run_jobs(jobs, out, args.workers, lambda line: print(line, file=sys.stderr, flush=True))
    env = load_env(jobs[0].env, **jobs[0].env_options)
    tasks = {task.task_id: task for task in env.tasks()}
    split = jobs[0].rounds[0]["evaluate"]["split"]
    rows = summarise(records, {id_: task.scenario_id for id_, task in tasks.items()}, split)
    print(experiment_table(rows))
    if args.results:
        write_results(args.results, rows, records, tasks)
        print(f"results: {args.results}")
    return 0
