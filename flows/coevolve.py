"""Rounds of co-evolution as a Prefect flow. DVC decides what has to run; a task calls one stage.

`python -m flows.coevolve` runs it without a server; prefect.yaml deploys the same flow. See README.
"""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from seal.core.errors import RoundError, SealError, as_seal_error
from seal.settings.params import load_params
from seal.workspace.lineage import STAGES, START_STAGES, Lineage, find_root, read_metrics

if __name__ == "__main__":  # before Prefect reads its settings: no server, no log but ours, state inside the workspace
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
    os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "300")  # 20 are few on a busy machine
    if not os.environ.get("PREFECT_API_URL"):
        home = Path(os.environ.setdefault("PREFECT_HOME", str(find_root() / ".seal" / "prefect")))
        home.mkdir(parents=True, exist_ok=True)
os.environ.setdefault("DO_NOT_TRACK", "1")

from prefect import flow, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE

from seal.commands.custom_env import changed_tools
from seal.commands.round import scores_line
from seal.pipeline.convergence import converged, dev_scores
from seal.workspace.dvc import StageError, environment, repro
from seal.workspace.lock import recorded
from seal.workspace.params_file import add_round, next_id, resolve

PLAYED = {"diagnose": "collect", "train": "train", "evaluate": "evaluate", "evaluate_start": "evaluate"}  # their phase
SEND_TIMEOUT = 120.0  # seconds


def _worth_retrying(task, task_run, state) -> bool:
    """A wrong parameter or a broken contract stays wrong; a killed or crashed stage may not."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, StageError) or not isinstance(error, SealError)


@task(
    task_run_name="{target}",
    cache_policy=NO_CACHE,  # what is done is for DVC to say
    retries=1,
    retry_delay_seconds=1,
    retry_condition_fn=_worth_retrying,
)
def run_stage(root: str, target: str, timeout: float | None = None, force: bool = False) -> bool:
    """Bring one stage up to date. True when it ran, False when it was. `force`: run it whatever DVC says."""
    ran = repro(Path(root), [target], ["-f"] if force else [], timeout=timeout)
    print(f"{target:<24}{'done' if ran else 'up to date'}", flush=True)
    return ran


@flow(name="coevolve", flow_run_name="coevolve", log_prints=__name__ != "__main__")
def coevolve(
    rounds: list[str] | None = None,
    extend_to: int = 0,
    stage_timeout: float | None = None,
    root: str = "",
    otel: str | None = None,
) -> list[str]:
    """Run rounds with everything they stand on; parents first.

    Args: `rounds` (default: all of params.yaml); `extend_to`: go on with new rounds after the last of them and like it
    (the first of a line: like the defaults), until its line has so many or has converged; `stage_timeout`: seconds for
    one stage; `root`: the workspace; `otel`: URL of an OTLP receiver that gets the rollouts of every stage that runs
    ("": the one OTEL_EXPORTER_OTLP_ENDPOINT names).
    Returns the ids that are up to date now. A line that has converged is not run further.
    """
    folder = Path(root) if root else find_root()
    path = folder / "params.yaml"
    lineage = Lineage(load_params(path))
    recorded(folder)  # a damaged dvc.lock is told before a stage is tried
    wanted = rounds or [*lineage.params.starts, *lineage.params.rounds]
    needed = {name for round_id in wanted for name in lineage.line(round_id)}
    done: list[str] = []
    closed: set[str] = set()
    for name, depth in lineage.walk():
        if name in needed and not closed & set(lineage.line(name)):
            _run_round(folder, lineage, name, depth, stage_timeout, otel)
            done.append(name)
            children = {child for child in lineage.children(name) if child in needed}
            if children and (reason := _why_stop(folder, lineage, name)):
                closed |= children
                print(f"{name}: {reason}", flush=True)
    last = wanted[-1]
    while last in done and lineage.depth(last) < extend_to:
        if reason := _why_stop(folder, lineage, last):
            print(f"{last}: {reason}", flush=True)
            break
        new = next_id(lineage.params, last)
        add_round(path, new, resolve(lineage.params, last, {}, lineage.params.rounds.get(last), new))
        lineage, last = Lineage(load_params(path)), new
        _run_round(folder, lineage, last, lineage.depth(last), stage_timeout, otel)
        done.append(last)
    return done


def _run_round(
    root: Path, lineage: Lineage, name: str, depth: int, timeout: float | None, otel: str | None = None
) -> None:
    ran = []
    if not depth:
        env = lineage.entry(name).env
        ran.append(run_stage(str(root), f"prepare@{env}", timeout, env in changed_tools(root, lineage)))
    for stage in STAGES if depth else START_STAGES:
        ran.append(run_stage(str(root), f"{stage}@{name}", timeout))
        if ran[-1] and otel is not None and stage in PLAYED:
            _send(root, name, PLAYED[stage], otel)
    if any(ran):
        _publish(root, lineage, name)


def _send(root: Path, name: str, phase: str, otel: str) -> None:
    """Send what a stage has played. In a process of its own, so that nothing of it can fail or hold up a round."""
    words = ["export", "otel", name, "--phase", phase, "--endpoint", otel, "--timeout", "5", "--root", str(root)]
    try:
        done = subprocess.run([sys.executable, "-m", "seal.cli", *words], cwd=root, env=environment(root),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=SEND_TIMEOUT)  # fmt: skip
        fine = done.returncode in (0, RoundError.exit_code)  # of the latter: the stage played nothing
        said = "" if fine else (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[0]
    except (OSError, subprocess.TimeoutExpired) as error:
        said = str(error)
    if said:
        print(f"warning: {phase} of {name} was not sent, the run goes on: {said.removeprefix('error: ')}",
              file=sys.stderr, flush=True)  # fmt: skip


def _why_stop(root: Path, lineage: Lineage, name: str) -> str:
    """Why the line of this round should not go on; "" when it should."""
    settings = lineage.params.flow
    line = lineage.line(name)
    if len(line) - 1 >= settings.max_rounds:
        return f"flow.max_rounds ({settings.max_rounds}) is reached"
    scores = dev_scores([read_metrics(root, one) or {} for one in line])
    return converged(scores, settings.patience, settings.min_gain)


def _publish(root: Path, lineage: Lineage, name: str) -> None:
    """Prefect artifacts of a finished round: scores of its line, what its labels did, what its interface gained."""
    from seal.report.artifacts import interface_diff, label_shift

    line = lineage.line(name)
    rows = "\n".join(f"| {one} | {scores_line(read_metrics(root, one))} |" for one in line)
    create_markdown_artifact(f"| round | scores |\n|---|---|\n{rows}\n", key=f"results-{_key(name)}")
    if len(line) > 1:
        create_markdown_artifact(label_shift(root, line[-2], name), key=f"label-shift-{_key(name)}")
        create_markdown_artifact(interface_diff(root, line[-2], name), key=f"interface-{_key(name)}")


def _key(name: str) -> str:
    """Artifact keys know letters, digits and dashes."""
    return name.replace("_", "-")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the flow in this process; exit codes as `seal`."""
    parser = argparse.ArgumentParser("flows.coevolve", description=main.__doc__)
    parser.add_argument("rounds", nargs="*", help="default: all of params.yaml")
    parser.add_argument("--extend-to", type=int, default=0, metavar="N", help="add rounds until the line has N")
    parser.add_argument("--stage-timeout", type=float, metavar="SECONDS")
    parser.add_argument("--otel", metavar="URL", help="send rollouts there as they are played (docs/otel.md)")
    args = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # a stage must not outlive us, however we are ended
    try:
        coevolve(args.rounds or None, args.extend_to, args.stage_timeout, str(find_root()), args.otel)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        told = as_seal_error(error)
        print(f"error: {told}", file=sys.stderr)
        return told.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
