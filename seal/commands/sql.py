"""`seal sql "..."`: one SQL question over the tables of all rounds. See docs/tables.md and the README's ten."""

import argparse
import sys
from pathlib import Path

from seal.commands.output import add_format, check_format, form_of, write_answer
from seal.commands.places import add_root
from seal.core.errors import PLAY, ParamError

ROWS = 50  # of a plain table, where nothing else is said


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", help="one SELECT; try 'SHOW TABLES'")
    add_format(parser)
    parser.set_defaults(limit=None)  # then only a plain table is cut
    parser.add_argument("--explain", action="store_true", help="show how it would be answered, and do not")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write there instead of printing")
    add_root(parser)


def run(args: argparse.Namespace) -> int:
    from seal.workspace.views import ask, open_root, table_without_file

    form = form_of(args.format, args.output)
    limit = args.limit if args.limit is not None else ROWS if form == "table" and not args.output else 0
    output = check_format(form, args.output, limit)
    if args.explain and form != "table":
        raise ParamError("--explain", f"with --format {form}", "a plan is text: leave the format out")
    query = f"EXPLAIN {args.query}" if args.explain else args.query
    cut = limit and form == "table" and not args.output
    most = limit + 1 if cut else limit  # one more row tells that there are more
    con = open_root(args.root)
    write_answer(ask(con, query, 0 if args.explain else most), form, output, limit)
    if name := table_without_file(con, args.query):
        print(f"note: there is no file of the table {name} here, so it is empty: {PLAY}", file=sys.stderr)
    return 0
