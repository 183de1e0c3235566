"""Precision and recall of errors heard in tool results: `python benchmarks/bench_outcomes.py [--misses]`.

tests/tool_results.jsonl holds result texts as frameworks and tool servers write them, each with its source. Rows of
half `held_out` are of frameworks that nobody looked at while the rules of seal/tools/error_kinds.py were written; once
a rule is written for one of them, its framework is `seen`. Texts are bare: what a log flags beside them is not used.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seal.tools.error_kinds import error_kind

RESULTS = Path(__file__).parent.parent / "tests" / "tool_results.jsonl"


def results(half: str) -> list[Mapping[str, Any]]:
    rows = (json.loads(line) for line in RESULTS.read_text(encoding="utf-8").splitlines())
    return [row for row in rows if row["half"] == half]


def misses(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [row for row in rows if bool(error_kind(row["text"])) != row["error"]]


def measured(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """(precision, recall) of being an error."""
    wrong = misses(rows)
    errors, missed = sum(row["error"] for row in rows), sum(row["error"] for row in wrong)
    heard = errors - missed
    return heard / (heard + len(wrong) - missed), heard / errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--misses", action="store_true", help="print what is heard wrongly")
    options = parser.parse_args()
    for half in ("seen", "held_out"):
        rows = results(half)
        precision, recall = measured(rows)
        frameworks = len({row["framework"] for row in rows})
        print(f"{half:9} {len(rows)} texts of {frameworks} frameworks: precision {precision:.3f}, recall {recall:.3f}")
        for row in misses(rows) if options.misses else ():
            print(f"  {'missed' if row['error'] else 'heard '} {row['framework']}: {row['text'][:100]!r}")


if __name__ == "__main__":
    main()
