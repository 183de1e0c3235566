"""The Prefect flow, in process and deployed, over stand-in stages: it runs rounds, makes artifacts, stops in time."""

import os
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_pipeline_plumbing import PARAMS, stages
from workspaces import ROOT, command, ran, seal, workspace

from seal.settings.params import load_yaml

pytestmark = pytest.mark.slow
FLOW = """
flow: {max_rounds: 5, patience: 2, min_gain: 0.0}
"""


@pytest.fixture
def tree(tmp_path, monkeypatch):
    for name in ("PREFECT_API_URL", "PREFECT_HOME", "PREFECT_LOGGING_LEVEL"):
        monkeypatch.delenv(name, raising=False)
    folder = workspace(tmp_path / "w", FLOW + PARAMS, plain=True)
    seal(folder, "round", "new", "--set", "collect.tasks=5")
    return folder


def artifacts(home: Path) -> set[str]:
    with sqlite3.connect(home / "prefect.db") as database:
        return {key for (key,) in database.execute("select key from artifact where key is not null")}


def test_in_process_it_runs_what_is_missing_extends_the_line_and_stops_on_convergence(tree):
    home = tree / ".seal" / "prefect"
    assert not home.exists()
    done = command(tree, sys.executable, "-m", "flows.coevolve", "--extend-to", "9")
    # the stand-in's dev score never gains, so with patience 2 the line ends after two rounds
    assert ran(tree) == ["prepare@shop", "start@r0", "evaluate_start@r0", *stages("r1"), *stages("r2")]
    assert "has not gained for 2 rounds" in done.stdout
    assert "Traceback" not in done.stderr
    assert load_yaml(tree / "params.yaml")["rounds"]["r2"]["collect"]["tasks"] == 5  # as its parent
    assert {"results-r1", "label-shift-r1", "interface-r1", "results-r2"} <= artifacts(home)


def test_a_failing_stage_is_one_error_with_its_exit_code(tree):
    seal(tree, "round", "new", "bad", "--set", "collect.tasks=666")
    done = command(tree, sys.executable, "-m", "flows.coevolve", check=False)
    assert done.returncode == 4
    assert done.stderr.strip().splitlines()[-2:] == ["error: table steps: 7 rows", "  -> mend them"]
    assert "Traceback" not in done.stderr
    assert ran(tree)[-1] == "evolve_interface@bad"


def test_a_damaged_lock_is_one_error_before_any_stage(tree):
    (tree / "dvc.lock").write_text("[]")
    done = command(tree, sys.executable, "-m", "flows.coevolve", check=False)
    assert done.returncode == 3 and "error: dvc.lock: " in done.stderr and "git checkout -- " in done.stderr
    assert ran(tree) == []


def test_deployed_it_runs_from_an_empty_home(tree, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {
        **os.environ,
        "PWD": str(tree),  # what prefect.yaml freezes as the working directory
        "PREFECT_HOME": str(tmp_path / "home"),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "PYTHONPATH": str(ROOT),
        "DO_NOT_TRACK": "1",
    }

    def prefect(*words: str, seconds: float = 120) -> subprocess.CompletedProcess:
        command = [sys.executable, "-m", "prefect", *words]
        done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, timeout=seconds, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + (tmp_path / "children.log").read_text()[-6000:]
        return done

    children = []
    try:
        server = [sys.executable, "-m", "prefect", "server", "start", "--port", str(port)]
        children.append(_child(server, tree, env))
        _wait_until_answers(port)
        prefect("work-pool", "create", "local", "--type", "process", "--overwrite")
        prefect("--no-prompt", "deploy", "--all")
        children.append(_child([sys.executable, "-m", "prefect", "worker", "start", "--pool", "local"], tree, env))
        done = prefect("deployment", "run", "coevolve/local", "--watch", "--param", 'rounds=["r1"]', seconds=300)
        assert "Completed" in done.stdout
    finally:
        for child in reversed(children):
            child.terminate()
        for child in reversed(children):
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()
    assert ran(tree) == ["prepare@shop", "start@r0", "evaluate_start@r0", *stages("r1")]
    assert "results-r1" in artifacts(tmp_path / "home")


def _child(words: list[str], folder: Path, env: dict[str, str]) -> subprocess.Popen:
    with (Path(env["PREFECT_HOME"]).parent / "children.log").open("a") as log:
        return subprocess.Popen(words, cwd=folder, env=env, stdout=log, stderr=log)


def _wait_until_answers(port: int, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)
    raise AssertionError("the Prefect server did not come up")
