"""The command line itself: help, what it imports, exit codes."""

import subprocess
import sys
from pathlib import Path

import pytest

from seal.cli import VERBS, build_parser, main

ROOT = Path(__file__).parents[1]


def seal(*words: str, cwd: Path) -> subprocess.CompletedProcess:
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from seal.cli import main; sys.exit(main())"
    return subprocess.run([sys.executable, "-c", code, *words], cwd=cwd, capture_output=True, text=True, check=False)


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


def test_doctor_lists_what_it_looked_at(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    main(["doctor"])
    said = capsys.readouterr().out
    words = ("python", "packages", "torch", "SmolLM2", "tau2-bench", "git", "dvc", "params.yaml", "disk")
    assert all(word in said for word in words)
