"""The command line itself: help, what it imports, exit codes."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from seal.cli import VERBS, build_parser, main
from seal.commands import doctor
from seal.core.errors import REFUSALS, ArtifactError, MachineError, ParamError, as_seal_error
from seal.workspace.dvc import ERROR_FILE, _failure

ROOT = Path(__file__).parents[1]


def seal(*words: str, cwd: Path) -> subprocess.CompletedProcess:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from seal.cli import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", code, *words], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("kind", [ParamError, ArtifactError, MachineError])
def test_an_error_of_a_worker_process_stays_what_it_is(kind):
    error = kind("thing", "value", "remedy")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and str(again) == str(error) and again.remedy == "remedy"


def test_help_imports_nothing_heavy(tmp_path):
    done = seal("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "run" in done.stdout
    code = "import sys; from seal.cli import build_parser; build_parser(); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"torch", "transformers", "prefect", "pyarrow", "duckdb", "dvc", "pandas", "numpy"} & set(loaded)


@pytest.mark.parametrize("verb", [verb for verb in VERBS if (ROOT / "seal" / "commands" / f"{verb}.py").exists()])
def test_every_verb_has_help(verb, capsys):
    with pytest.raises(SystemExit) as stop:
        main([verb, "--help"])
    assert stop.value.code == 0
    assert verb in capsys.readouterr().out


def test_no_verb_prints_help(capsys):
    assert main([]) == 0
    assert "usage: seal" in capsys.readouterr().out


def test_an_unknown_verb_is_a_usage_error():
    with pytest.raises(SystemExit) as stop:
        build_parser("frob").parse_args(["frob"])
    assert stop.value.code == 2


def test_outside_a_workspace_is_one_error(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["round", "list"]) == 5
    said = capsys.readouterr().err
    assert said.startswith("error: workspace: ")
    assert "Traceback" not in said


def test_interruption_is_130(monkeypatch, tmp_path):
    def interrupted(args):
        raise KeyboardInterrupt

    monkeypatch.setattr("seal.commands.round.run", interrupted)
    assert main(["round", "list"]) == 130


@pytest.mark.parametrize("number", sorted(REFUSALS))
@pytest.mark.parametrize(
    "made",
    [
        lambda n: OSError(n, os.strerror(n), "some/file"),
        lambda n: OSError(n, os.strerror(n)),
        lambda n: shutil.Error([("a", "b", f"[Errno {n}] {os.strerror(n)}: 'some/file'")]),
        lambda n: ValueError(f"Error while serializing: I/O error: {os.strerror(n)} (os error {n})"),  # safetensors
    ],
)
def test_what_the_machine_refuses_is_one_error(monkeypatch, capsys, number, made):
    def refused(args):
        raise made(number)

    monkeypatch.setattr("seal.commands.round.run", refused)
    assert main(["round", "list"]) == 7
    said = capsys.readouterr().err
    assert said.startswith("error: ") and said.count("error:") == 1
    assert os.strerror(number) in said and said.rstrip().endswith(REFUSALS[number])


def test_any_other_error_of_the_system_is_a_fault_of_the_code(monkeypatch):
    def broken(args):
        raise FileNotFoundError(2, "No such file or directory", "x")

    monkeypatch.setattr("seal.commands.round.run", broken)
    with pytest.raises(FileNotFoundError):
        main(["round", "list"])


def test_what_torch_cannot_write_is_what_the_machine_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises((OSError, RuntimeError)) as caught, open("/dev/full", "wb") as file:
        torch.save(torch.zeros(100_000), file)
    assert isinstance(as_seal_error(caught.value), MachineError)


@pytest.mark.parametrize("words", [("sql", "FROM range(9)"), ("sql", "FROM range(99999)", "--format", "csv")])
def test_a_full_output_is_one_error(tmp_path, words):
    (tmp_path / "data").mkdir()
    line = [sys.executable, "-m", "seal.cli", *words, "--limit", "0", "--root", str(tmp_path)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(line, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 7
    assert done.stderr.splitlines()[0] == "error: a file: No space left on device" and done.stderr.count("\n") == 2


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_file_that_cannot_be_written_is_named_and_not_there(tmp_path, form):
    (tmp_path / "data").mkdir()
    sql = "SELECT hash(range) AS h FROM range(99999)"
    words = (
        f"ulimit -f 8; exec {sys.executable} -m seal.cli sql '{sql}' --output {tmp_path}/out.{form} --root {tmp_path}"
    )
    done = subprocess.run(["bash", "-c", words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 7 and done.stderr.startswith(f"error: {tmp_path}/out.{form}: File too large\n  -> ")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.parametrize("told_to", ["error.json", "/dev/full"])
def test_a_stage_that_cannot_write_tells_the_process_that_runs_dvc(tmp_path, told_to):
    """By the error file, or on a full disk by what it prints: both become the same error."""
    for name in ("params.yaml", "dvc.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    env = {**os.environ, ERROR_FILE: told_to, "PYTHONPATH": str(ROOT)}
    words = f"ulimit -f 1; exec {sys.executable} {ROOT}/stages/prepare.py shop"
    done = subprocess.run(["bash", "-c", words], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    error = _failure(["prepare@shop"], done.stderr.splitlines(), tmp_path / "error.json")
    assert done.returncode == 7 == error.exit_code and isinstance(error, MachineError)
    assert (error.thing, error.value) == (str(tmp_path / "data" / "tasks" / "shop.parquet"), "File too large")
    assert list((tmp_path / "data" / "tasks").iterdir()) == []


@pytest.mark.parametrize("text", ["", "{", '{"train": 1.5', "[]", "3", "null"])
def test_damaged_timings_are_told_before_a_stage_works(tmp_path, monkeypatch, capsys, text):
    for name in ("params.yaml", "dvc.yaml"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TRL_EXPERIMENTAL_SILENCE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.delenv(ERROR_FILE, raising=False)
    monkeypatch.chdir(tmp_path)
    from seal.pipeline.stage import main as stage

    file, worked = tmp_path / "data" / "rounds" / "r1" / "timings.json", []
    file.parent.mkdir(parents=True)
    file.write_text(text)
    monkeypatch.setattr(sys, "argv", ["stages/collect.py", "r1"])
    with pytest.raises(SystemExit) as stop:
        stage(worked.append)
    said = capsys.readouterr().err
    assert (stop.value.code, worked) == (3, []) and said.count("\n") == 2 and said.endswith(f"rm {file}\n")
    file.unlink()  # as it says
    for name in ("collect", "verify"):
        monkeypatch.setattr(sys, "argv", [f"stages/{name}.py", "r1"])
        stage(worked.append)
    assert len(worked) == 2 and json.loads(file.read_text()).keys() == {"collect", "verify"}


def test_what_dvc_itself_cannot_write_is_told():
    said = ["Running stage", "ERROR: unexpected error - [Errno 28] No space left on device: '/w/.dvc/tmp/lock'"]
    error = _failure(["train@r1"], said, Path("not/there"))
    assert (error.thing, error.value, error.exit_code) == ("/w/.dvc/tmp/lock", "No space left on device", 7)


def test_doctor_lists_what_it_looked_at(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    main(["doctor"])
    said = capsys.readouterr().out
    words = ("python", "packages", "torch", "SmolLM2", "tau2-bench", "git", "dvc", "params.yaml", "disk")
    assert all(word in said for word in words)


def _lock_of(*pids: int) -> str:
    held = [{"pid": pid, "cmd": f"dvc repro {i}"} for i, pid in enumerate(pids)]
    return json.dumps({"write": {"/a": held[0]}, "read": {"/b": held}})


def test_doctor_looks_whether_who_holds_dvcs_lock_still_lives(tmp_path):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    lock = tmp_path / ".dvc" / "tmp" / "rwlock"
    lock.parent.mkdir(parents=True)
    (tmp_path / ".dvc" / "config").touch()
    for text, found, remedy in (
        (None, "initialised, free", ""),
        ("{}", "initialised, free", ""),
        ('{"write": {}, "read": {}}', "initialised, free", ""),
        (_lock_of(gone.pid), "initialised, free (DVC drops by itself what a killed", ""),
        (_lock_of(gone.pid, os.getpid()), f"locked by process {os.getpid()} (dvc repro 1)", "wait for its end"),
        *(
            (text, "damaged", "delete .dvc/tmp/rwlock")
            for text in ("", "{", "[]", "3", '{"read": 3}', '{"read": {"a": [1]}}', _lock_of(10**30))
        ),
    ):
        if text is not None:
            lock.write_text(text)
        (finding,) = doctor._dvc(tmp_path)
        assert found in finding.found and remedy in finding.remedy, text
        assert bool(finding.remedy) == bool(remedy), text
