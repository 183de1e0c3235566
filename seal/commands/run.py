"""`seal run`: bring rounds up to date, then show their scores."""

import argparse
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from seal.commands.custom_env import changed_tools
from seal.core.errors import ParamError
from seal.settings.params import load_params
from seal.workspace.dvc import StageError, alive, environment, is_current, stop, tied
from seal.workspace.lineage import STAGES, START_STAGES, Lineage, find_root
from seal.workspace.lock import recorded
from seal.workspace.params_file import add_preset, check_run, read_preset


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", help="add what presets/<PRESET>.yaml, or a file, holds to params.yaml, run it")
    parser.add_argument(
        "--rounds", type=int, metavar="N", help="go on, with rounds like the last, until the line has N"
    )
    parser.add_argument("--otel", nargs="?", const="", metavar="URL",
                        help="send rollouts to this OTLP receiver as they are played (docs/otel.md; without URL: the"
                        " one OTEL_EXPORTER_OTLP_ENDPOINT names, else localhost:4318)")  # fmt: skip


def run(args: argparse.Namespace) -> int:
    root = find_root()
    check_run(root / "params.yaml")
    wanted = [] if args.preset is None else use_preset(root, args.preset)
    lineage = Lineage(load_params(root / "params.yaml"))
    wanted = wanted or [*lineage.params.starts, *lineage.params.rounds]
    if not wanted:
        raise ParamError("rounds", "none", "add a start to params.yaml, or take a preset: seal run --preset shop-nano")
    if args.rounds is not None and args.rounds < 1:
        raise ParamError("--rounds", args.rounds, "at least 1")
    if args.otel:
        from seal.report.otel import Endpoint

        Endpoint(args.otel)  # a URL, or an error now
    for name in wanted:
        if lineage.parent(name):
            lineage.check_trains(name)
    recorded(root)  # a damaged dvc.lock is told now
    started = time.monotonic()
    enough = args.rounds is None or lineage.depth(wanted[-1]) >= args.rounds
    if enough and not changed_tools(root, lineage) and is_current(root, targets_of(lineage, wanted)):
        print(f"everything is up to date ({len(wanted)} rounds, checked in {time.monotonic() - started:.1f} s)")
        ran = False
    else:
        command = [sys.executable, "-m", "flows.coevolve", *wanted, "--extend-to", str(args.rounds or 0)]
        command += [] if args.otel is None else ["--otel", args.otel]
        if code := _wait(subprocess.Popen(command, cwd=root, env=environment(root), process_group=0)):
            if code < 0:
                raise StageError("flow", f"ended by signal {-code}", "run it again: what was done stays done")
            return code
        ran = True
    _show(root, ran)
    return 0


def _wait(flow: subprocess.Popen) -> int:
    """The flow's exit code. When we are told to end, so is it, and it gets the time to stop its stage; its group, with
    Prefect's server, ends with it and with us, also by `kill -9`."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with tied(flow.pid):
            return flow.wait()
    except KeyboardInterrupt:
        flow.terminate()
        flow.wait()
        raise
    finally:
        if flow.poll() is None or alive(flow.pid):
            stop(flow)
        signal.signal(signal.SIGTERM, before)


def use_preset(root: Path, name: str) -> list[str]:
    """Add a preset, named or a file, to params.yaml where it is missing; the ids of its rounds. Raises ParamError."""
    preset = read_preset(root, name)
    if isinstance(preset, Mapping) and not preset.get("rounds"):
        raise ParamError("--preset", name, "it holds no rounds to run: add some, each with its parent")
    return add_preset(root / "params.yaml", preset)


def targets_of(lineage: Lineage, rounds: list[str]) -> list[str]:
    """DVC stages of these rounds and everything they stand on, parents first."""
    needed = {name for round_id in rounds for name in lineage.line(round_id)}
    targets = []
    for name, depth in lineage.walk():
        if name in needed:
            targets += [] if depth else [f"prepare@{lineage.entry(name).env}"]
            targets += [f"{stage}@{name}" for stage in (STAGES if depth else START_STAGES)]
    return list(dict.fromkeys(targets))


def _show(root: Path, ran: bool) -> None:
    from seal.report.tables import results_table

    print()
    print(results_table(root))
    report = root / "data" / "report.html"
    if ran or not report.exists():
        from seal.report.html import write_report

        report = write_report(root)
    print(f"\nreport: {report}")
