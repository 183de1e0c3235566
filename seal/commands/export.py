"""`seal export <what>`: what rounds hold, for other tools. A module a kind: `add_arguments`, `run`, `HELP`."""

import argparse

from seal.commands import export_otel, export_preferences

KINDS = {"otel": export_otel, "preferences": export_preferences}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="<what>")
    for name, module in KINDS.items():
        sub = kinds.add_parser(name, help=module.HELP, description=f"{module.HELP[0].upper()}{module.HELP[1:]}.")
        module.add_arguments(sub)


def run(args: argparse.Namespace) -> int:
    return KINDS[args.kind].run(args)
