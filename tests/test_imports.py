"""Rooms import only rooms below them, by their public modules; what is heavy loads only where it is needed."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_rooms_import_only_rooms_below():
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    done = subprocess.run([*command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]


ROOMS = sorted(path.parent.name for path in (ROOT / "seal").glob("*/__init__.py"))


def imported(path: Path) -> list[tuple[str, str]]:
    """(room, module or name of its __init__) of every import of another room in a file."""
    own, found = path.relative_to(ROOT).parts[1], []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("seal."):
            room, *inside = node.module.split(".")[1:]
            found += [(room, inside[0])] if inside else [(room, name.name) for name in node.names]
    return [(room, name) for room, name in found if room != own and room in ROOMS]


def test_rooms_import_of_other_rooms_what_these_show_and_nothing_is_shown_that_none_imports():
    files = [path for folder in ("seal", "stages", "flows") for path in (ROOT / folder).rglob("*.py")]
    wanted = {(room, name): path for path in files for room, name in imported(path)}
    shown = {(room, name) for room in ROOMS for name in getattr(importlib.import_module(f"seal.{room}"), "__all__", ())}
    assert {place: wanted[place] for place in wanted.keys() - shown} == {}
    assert shown - wanted.keys() == set()


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_says_what_it_is_for_in_a_few_lines(room):
    assert len(importlib.import_module(f"seal.{room}").__doc__.strip().splitlines()) >= 3


@pytest.mark.parametrize("stage", ["verify", "diagnose", "evolve_interface"])
def test_light_stages_start_without_heavy_imports(stage):
    code = f"import sys; sys.path.insert(0, 'stages'); import {stage}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {"torch", "transformers", "trl", "prefect", "great_expectations"} & set(done.stdout.split())
