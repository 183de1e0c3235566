"""`seal <verb>`: argument parsing and exit codes. A verb's module loads only when it is called."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from seal.core.errors import as_seal_error

VERBS = {
    "run": "run the rounds that are not done, then show their scores",
    "round": "add a round or a branch, list the tree with scores",
    "replay": "run a round again in a clean workspace and compare hashes",
    "sql": "ask the tables of all rounds",
    "top": "where the policy fails most",
    "show": "print one rollout for a person",
    "diagnose": "label the failures of any log; prove the labels",
    "interface": "show, compare or export the learning interface",
    "experiment": "multi-seed comparisons",
    "export": "preference pairs, traces",
    "report": "write the HTML report",
    "doctor": "what is installed, pinned, reachable, writable",
    "parse": "tool calls of a text, as JSON",
    "call": "run tool calls in an environment, as JSON",
    "check": "verify and diagnose played turns, as JSON",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code: 0, 1 for any failure, 2 for wrong usage or parameters, 130 interrupted; others in seal.core.errors."""
    argv = list(sys.argv[1:] if argv is None else argv)
    verb = next((word for word in argv if not word.startswith("-")), None)
    parser = build_parser(verb)
    args = parser.parse_args(argv)
    if args.verb is None:
        parser.print_help()
        return 0
    try:
        code = args.run(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        sys.stderr.close()
        return 141
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        fault = as_seal_error(error)
        print(f"error: {fault}", file=sys.stderr)
        _drop_unwritable()
        return fault.exit_code


def _drop_unwritable() -> None:
    """What standard output cannot take, Python would try to write again at the end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def build_parser(verb: str | None = None) -> argparse.ArgumentParser:
    """The parser; only the options of `verb` are there, so that only its module is imported."""
    parser = argparse.ArgumentParser("seal", description="Co-evolves a tool-calling policy and its learning interface.")
    verbs = parser.add_subparsers(dest="verb", metavar="<verb>")
    for name, text in VERBS.items():
        sub = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        if name == verb:
            module = importlib.import_module(f"seal.commands.{name}")
            module.add_arguments(sub)
            sub.set_defaults(run=module.run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
