"""The fuzzing of call parsing, itself tested: it passes, goes on where it stopped, and finds what there is to find."""

import json
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).parents[1] / "benchmarks" / "fuzz_parse.py"


def fuzz(*words, patch=""):
    """Exit code and last report of a run; `patch` is Python text that runs before it."""
    code = f"import runpy, sys; sys.argv = {[str(BENCH), *map(str, words)]!r}\n{patch}\n"
    code += f"runpy.run_path({str(BENCH)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


def report(text):
    return next(json.loads(line) for line in text.splitlines() if line.startswith('{"seed"'))


def test_a_run_goes_on_where_it_stopped(tmp_path):
    state = tmp_path / "state.json"
    for outputs in (300, 700):
        code, out, err = fuzz("--outputs", outputs, "--state", state)
        assert code == 0, out + err
    whole = report(fuzz("--outputs", 700)[1])
    parts = report(out)
    same = ("outputs", "parses", "kinds", "findings")
    assert {key: parts[key] for key in same} == {key: whole[key] for key in same}
    assert whole["outputs"] == 700 and whole["parses"] == 2100 and whole["findings"] == 0
    assert fuzz("--outputs", 700, "--state", state, "--seed", 1)[0] == 2


def test_a_parser_that_evaluates_is_found():
    patch = """
import ast, seal.tools.literal as literal
true = literal._literal
def evaluating(node, depth, names):
    if isinstance(node, ast.BinOp):
        return eval("1")
    return true(node, depth, names)
literal._literal = evaluating
"""
    code, out, _ = fuzz("--outputs", 3000, patch=patch)
    assert code == 1 and '"wrong": "ran [\'exec\']"' in out


def test_a_parser_that_raises_is_found():
    patch = "import seal.tools.parse as parse; parse.READERS['words'] = lambda *a: 1 / 0"
    code, out, _ = fuzz("--outputs", 50, patch=patch)
    assert code == 1 and "ZeroDivisionError" in out
