"""`seal call`: run literal calls in fresh instances of an environment's classes, as JSON."""

import argparse
from pathlib import Path

from seal.commands import json_io
from seal.core.errors import ParamError
from seal.core.types import Call, Json

SHAPE = 'a list of calls: [{"name": "tool", "arguments": {"parameter": value}}, ...]'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--env", required=True, choices=("bfcl",))
    parser.add_argument("--classes", required=True, metavar="A,B", help="classes whose tools there are")
    parser.add_argument("--config", type=Path, metavar="FILE", help='their start: {"ClassName": {...}}')
    parser.add_argument("--long-context", action="store_true", help="pad files and records as long_context tasks do")


def run(args: argparse.Namespace) -> int:
    """Calls on standard input; the list of result strings, worded as the official executor words them."""
    from seal.env.bfcl.session import BfclSession

    calls = calls_of(json_io.read_stdin(SHAPE))
    classes = [name.strip() for name in args.classes.split(",") if name.strip()]
    config = json_io.read_file(args.config, "initial config") if args.config else {}
    if not isinstance(config, dict) or not all(isinstance(scenario, dict) for scenario in config.values()):
        raise ParamError("initial config", args.config, 'give {"ClassName": {...}}')
    try:
        session = BfclSession(classes, config, args.long_context)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ParamError(
            "initial config", f"{type(error).__name__}: {error}", "write it as BFCL's initial_config"
        ) from None
    json_io.write([session.call(call).raw for call in calls])
    return 0


def calls_of(value: Json) -> list[Call]:
    """Raises ParamError naming the first entry that is no call."""
    if not isinstance(value, list):
        raise ParamError("standard input", type(value).__name__, f"give {SHAPE}")
    calls = []
    for number, entry in enumerate(value):
        arguments = entry.get("arguments", {}) if isinstance(entry, dict) else None
        if (
            not isinstance(arguments, dict)
            or not isinstance(entry.get("name"), str)
            or set(entry) - {"name", "arguments"}
        ):
            raise ParamError(f"call {number}", repr(entry)[:80], f"give {SHAPE}")
        calls.append(Call(entry["name"], arguments))
    return calls
