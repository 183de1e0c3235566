"""Rooms import only rooms below them; what is heavy loads only where it is needed."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_rooms_import_only_rooms_below():
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    done = subprocess.run([*command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


@pytest.mark.parametrize("stage", ["verify", "diagnose", "evolve_interface"])
def test_light_stages_start_without_heavy_imports(stage):
    code = f"import sys; sys.path.insert(0, 'stages'); import {stage}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"torch", "transformers", "trl", "prefect", "great_expectations"} & set(done.stdout.split())
