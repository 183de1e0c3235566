"""DVC, the lineage tree and replay, over stand-in stages: what runs when, and what errors become."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from workspaces import ROOT, command, commit, dvc, ran, seal, workspace

from seal.core.errors import ArtifactError, ContractError, RoundError
from seal.settings.params import load_params
from seal.workspace.dvc import StageError, is_current, repro
from seal.workspace.lineage import STAGES, Lineage

pytestmark = pytest.mark.slow

PARAMS = """run: {seed: 1}
envs: {shop: {}}
starts:
  r0:
    env: shop
    recipe: 1
    policy: {kind: scripted}
    evaluate: {split: test, tasks: 3, trials: 1, temperature: 0.0, measure_on: true, max_action_tokens: 24, context: 64}
defaults: {train: {algorithm: none}}
rounds:
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """r0 -> r1 -> r2, run and committed. Tests copy it."""
    folder = workspace(tmp_path_factory.mktemp("finished"), PARAMS, plain=True)
    for _ in range(2):
        seal(folder, "round", "new")
    dvc(folder, "repro")
    commit(folder)
    return folder


@pytest.fixture
def tree(finished, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    shutil.copytree(finished, tmp_path / "w", symlinks=True)
    ran(tmp_path / "w")
    return tmp_path / "w"


def stages(name: str) -> list[str]:
    return [f"{stage}@{name}" for stage in STAGES]


def test_a_finished_tree_has_nothing_to_do(tree):
    dvc(tree, "repro")
    assert ran(tree) == []
    assert is_current(tree, [*stages("r1"), *stages("r2")])


def test_a_parameter_of_the_last_round_reruns_only_what_reads_it(tree):
    text = (tree / "params.yaml").read_text()
    head, tail = text.split("  r2:")
    (tree / "params.yaml").write_text(head + "  r2:" + tail.replace("lr: 0.0003", "lr: 0.0007"))
    assert not is_current(tree, stages("r2"))
    dvc(tree, "repro")
    assert ran(tree) == ["train@r2", "evaluate@r2"]


def test_a_branch_runs_its_six_stages_and_touches_no_other(tree):
    before = command(tree, "git", "status", "--porcelain").stdout
    seal(tree, "round", "branch", "b2", "--from", "r1", "--set", "train.lr=0.5")
    dvc(tree, "repro")
    assert ran(tree) == stages("b2")
    assert before == ""
    same, other = (
        [(tree / f"data/rounds/{r}/{s}/part.txt").read_text() for r in ("b2", "r2")] for s in ("collect", "train")
    )
    assert same[0] == same[1]
    assert other[0] != other[1]


def test_changing_the_defaults_reruns_nothing(tree):
    text = (tree / "params.yaml").read_text()
    changed = text.replace("defaults: {train: {", "defaults: {train: {lr: 0.9, ")
    assert changed != text
    (tree / "params.yaml").write_text(changed)
    dvc(tree, "repro")
    assert ran(tree) == []


def test_git_sees_metrics_and_the_lock_and_nothing_else_of_a_run(tree):
    files = command(tree, "git", "ls-files", "data", "dvc.lock").stdout.split()
    assert files == [*(f"data/rounds/{name}/metrics.json" for name in ("r0", "r1", "r2")), "dvc.lock"]


def test_a_replay_is_exact_and_leaves_the_workspace_alone(tree):
    done = seal(tree, "replay", "r2")
    assert done.stdout.startswith("EXACT: r2")
    assert command(tree, "git", "status", "--porcelain").stdout == ""
    assert command(tree, "git", "worktree", "list").stdout.count("\n") == 1
    assert ran(tree) == []
    assert seal(tree, "replay", "r0").stdout.startswith("EXACT: r0")


def test_a_replay_brings_the_policy_of_the_start_to_a_round_that_compares_with_it(tree):
    seal(tree, "round", "new", "r3", "--set", "train.reference=start")
    dvc(tree, "repro")
    commit(tree)
    assert seal(tree, "replay", "r3").stdout.startswith("EXACT: r3")


@pytest.mark.parametrize("name", ["r0", "r2"])
def test_a_replay_on_a_clone_where_nothing_was_played_says_so(tree, tmp_path, name):
    command(tmp_path, "git", "clone", "-q", str(tree), "clone")
    done = seal(tmp_path / "clone", "replay", name, check=False)
    assert done.returncode == 5 and done.stderr.count("\n") == 2 and "dvc.org" not in done.stderr
    assert "DVC has not checked out data/" in done.stderr and "data/tasks/shop.parquet" in done.stderr
    assert "seal run" in done.stderr and "dvc pull" in done.stderr


def test_a_replay_names_what_differs(tree):
    seal(tree, "round", "new", "r3", "--set", "collect.tasks=669")  # its evaluate stage is random
    dvc(tree, "repro")
    commit(tree)
    done = seal(tree, "replay", "r3", check=False)
    assert done.returncode == 1
    assert "DIFFERS: data/rounds/r3/evaluate" in done.stdout
    assert "data/rounds/r3/policy" not in done.stdout


@pytest.mark.parametrize("name", ["params.yaml", "dvc.lock"])
def test_a_replay_refuses_what_is_not_committed(tree, name):
    (tree / name).write_text((tree / name).read_text() + "# changed\n")
    done = seal(tree, "replay", "r1", check=False)
    assert done.returncode == 5
    assert name in done.stderr
    assert "commit first" in done.stderr


def test_a_stage_s_own_error_comes_through(tree):
    seal(tree, "round", "new", "r3", "--set", "collect.tasks=666")
    with pytest.raises(ContractError, match="7 rows"):
        repro(tree, stages("r3"))
    with pytest.raises(ArtifactError, match="evaluate@r3"):
        repro(tree, ["evaluate@r3"])
    with pytest.raises(RoundError, match="r9"):
        repro(tree, ["collect@r9"])


def test_a_crash_is_told_with_its_last_lines(tree):
    seal(tree, "round", "new", "r3", "--set", "collect.tasks=667")
    with pytest.raises(StageError, match="boom"):
        repro(tree, stages("r3"))


def test_a_time_limit_leaves_no_process_behind(tree):
    seal(tree, "round", "new", "r3", "--set", "collect.tasks=668")
    repro(tree, stages("r3")[:4])
    with pytest.raises(StageError, match="time limit"):
        repro(tree, ["train@r3"], timeout=15.0)
    assert not _alive(int((tree / "pid").read_text()))


def test_an_interruption_ends_the_stage_too(tree):
    seal(tree, "round", "new", "r3", "--set", "collect.tasks=668")
    # A parent that runs in the background hands down an ignored SIGINT: take it back first.
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    code += f"from pathlib import Path; from seal.workspace.dvc import repro; repro(Path('.'), {stages('r3')!r})"
    caller = subprocess.Popen([sys.executable, "-c", code], cwd=tree, env={**os.environ, "PYTHONPATH": str(ROOT)},
                              stderr=subprocess.DEVNULL)  # fmt: skip
    deadline = time.monotonic() + 30
    while not (tree / "pid").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    caller.send_signal(signal.SIGINT)
    caller.wait(15)
    assert not _alive(int((tree / "pid").read_text()))


@pytest.mark.parametrize(("which", "sign", "code"), [("run", 15, 130), ("run", 9, -9), ("flow", 9, 1)])
def test_seal_run_takes_everything_with_it(tree, which, sign, code):
    """However it or its flow is ended: the stage, DVC, the flow and Prefect's server."""
    seal(tree, "round", "new", "r3", "--set", "collect.tasks=668")
    caller = subprocess.Popen([sys.executable, "-m", "seal.cli", "run"], cwd=tree, stderr=subprocess.DEVNULL,
                              env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    deadline = time.monotonic() + 120
    while not (tree / "pid").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    family = _family(caller.pid)
    assert int((tree / "pid").read_text()) in family
    assert sum(b"uvicorn" in words for words in family.values()) == 1
    flow = next(pid for pid, words in family.items() if b"flows.coevolve" in words)
    os.kill(caller.pid if which == "run" else flow, sign)
    assert caller.wait(30) == code
    deadline = time.monotonic() + 30
    while any(map(_alive, family)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [words for pid, words in family.items() if _alive(pid)] == []


def test_callers_wait_for_each_other(tree):
    seal(tree, "round", "branch", "b2", "--from", "r1")
    seal(tree, "round", "branch", "c2", "--from", "r1")
    failed = []

    def call(name: str) -> None:
        try:
            repro(tree, stages(name)[:3])
        except (StageError, ArtifactError) as error:
            failed.append(error)

    threads = [threading.Thread(target=call, args=(name,)) for name in ("b2", "c2")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert is_current(tree, [*stages("b2")[:3], *stages("c2")[:3]])


def test_every_round_of_params_is_a_stage_of_dvc(tree):
    lineage = Lineage(load_params(tree / "params.yaml"))
    listed = {line.split()[0] for line in dvc(tree, "stage", "list").stdout.splitlines()}
    of_rounds = {stage for name in lineage.params.rounds for stage in stages(name)}
    assert listed == {"prepare@shop", "start@r0", "evaluate_start@r0"} | of_rounds


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _family(pid: int) -> dict[int, bytes]:
    """The command lines of a process and of all it started."""
    words = {pid: Path(f"/proc/{pid}/cmdline").read_bytes()}
    for child in (p for task in Path(f"/proc/{pid}/task").iterdir() for p in (task / "children").read_text().split()):
        words |= _family(int(child))
    return words
