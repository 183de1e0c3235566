"""`seal report`: the results table on the terminal, and the HTML page."""

import argparse
from pathlib import Path

from seal.commands.places import add_root, file_place


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_root(parser)
    parser.add_argument("--out", type=Path, help="where to write the page (default: data/report.html)")
    parser.add_argument("--table", action="store_true", help="the table alone, no page")


def run(args: argparse.Namespace) -> int:
    from seal.commands.custom_env import changed_tools
    from seal.report.tables import results_table
    from seal.settings.params import load_params
    from seal.workspace.lineage import Lineage
    from seal.workspace.lock import changed_since

    out = file_place("--out", args.out)
    print(results_table(args.root))
    lineage = Lineage(load_params(args.root / "params.yaml"))
    for name, key in changed_since(args.root, lineage, changed_tools(args.root, lineage)).items():
        print(f"{name}: measured before {key} changed; run it again: seal run")
    if not args.table:
        from seal.report.html import write_report

        print(f"report: {write_report(args.root, out)}")
    return 0
