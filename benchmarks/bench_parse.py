"""How fast calls are read against another commit: `python benchmarks/bench_parse.py [--against COMMIT] [--repeats 9]`.

The texts are what policies write: reference turns of BFCL's base tasks in each call format with their tools' docs, one
in four behind a thought, one in eight an answer in words, one in sixteen cut off. Both commits read the same texts in
processes of their own, in turn; a figure is the median, over repeats, of new CPU seconds to old.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from seal.env import load_env
from seal.tools.parse import READERS, format_calls, parse

ROOT = Path(__file__).parents[1]
PASSES = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--against", default="8fa1a6d", help="a commit (default: before arguments could stand elsewhere)"
    )
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        return print(json.dumps(_seconds(json.loads(args.child.read_text()))))
    with tempfile.TemporaryDirectory() as folder:
        old = Path(folder)
        archive = subprocess.run(["git", "archive", args.against, "seal"], cwd=ROOT, capture_output=True, check=True)
        subprocess.run(["tar", "-x"], cwd=old, input=archive.stdout, check=True)
        texts = old / "texts.json"
        texts.write_text(json.dumps(_texts()))
        pairs = [(_child(ROOT, texts), _child(old, texts)) for _ in range(args.repeats)]
    for name in pairs[0][0]:
        ratios = sorted(new[name] / before[name] for new, before in pairs)
        print(f"{name:20} {statistics.median(ratios):.2f} times as long ({ratios[0]:.2f} to {ratios[-1]:.2f})")


def _texts() -> dict[str, list]:
    """`[text, JSON-schema tools]` by format."""
    env, rng = load_env("bfcl"), random.Random(0)
    found: dict[str, list] = {format: [] for format in sorted(READERS)}
    for task in [task for task in env.tasks() if task.category == "base"]:
        schema = {doc.name: {param.name: param.type for param in doc.params} for doc in env.docs(task, 0)}
        for turn in task.turns:
            for format, texts in found.items():
                draw, text = rng.random(), format_calls(turn.gold, format)
                if draw < 1 / 4:
                    text = f"<think>\nThe user wants this: {turn.message}\n</think>\n\n{text}"
                elif draw < 3 / 8:
                    text = f"It is done. You asked: {turn.message}"
                elif draw < 7 / 16:
                    text = text[: 2 * len(text) // 3]
                texts.append([text, schema])
    return found


def _seconds(texts: dict[str, list]) -> dict[str, float]:
    """CPU a format and mode, and of all."""
    spent = {}
    for format, cases in texts.items():
        for mode in ("strict", "lenient"):
            started = time.process_time()
            for text, schema in cases * PASSES:
                parse(text, format, schema, mode)
            spent[f"{format} {mode}"] = time.process_time() - started
    return spent | {"all": sum(spent.values())}


def _child(root: Path, texts: Path) -> dict[str, float]:
    command = [sys.executable, str(Path(__file__)), "--child", str(texts)]
    run = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(root)}, capture_output=True, check=True, text=True
    )
    return json.loads(run.stdout)


if __name__ == "__main__":
    main()
