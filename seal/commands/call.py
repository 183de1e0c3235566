"""`seal call`: run literal calls in fresh instances of an environment's classes, as JSON."""

import argparse
from pathlib import Path

from seal.commands import json_io
from seal.commands.check import task_named
from seal.commands.custom_env import env_named, session_named
from seal.core.errors import ParamError, SealError
from seal.core.types import Call, Json

CONFIG_SHAPE = 'give BFCL\'s initial_config: {"ClassName": {...}}'
SHAPE = 'a list of calls: [{"name": "tool", "arguments": {"parameter": value}}, ...]'
# option -> the environments it says something to
APPLIES = {"classes": ("bfcl",), "config": ("bfcl", "custom"), "task": ("tau2",), "long_context": ("bfcl",)}
EXAMPLE = """seal call --env bfcl --classes MathAPI <<< '[{"name": "add", "arguments": {"a": 1, "b": 2}}]'"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    json_io.describe_stdin(parser, SHAPE, EXAMPLE)
    parser.add_argument("--env", required=True, metavar="ENV", help="bfcl, custom:my_pkg.my_tools, tau2, tau2:solo")
    parser.add_argument("--classes", default="", metavar="A,B", help="of bfcl: classes whose tools there are")
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help='their start: {"ClassName": {...}}, or of custom: a state'
    )
    parser.add_argument("--task", default="", metavar="ID", help="of tau2: the task whose start state there is")
    parser.add_argument("--long-context", action="store_true", help="of bfcl: pad files and records as its tasks do")


def run(args: argparse.Namespace) -> int:
    """Calls on standard input; the list of result strings, worded as the official executor words them."""
    kind = args.env.partition(":")[0]
    refuse_unused(args, kind)
    calls = calls_of(json_io.read_stdin(SHAPE))
    if kind == "tau2":
        env = env_named(args.env)
        conversation = env.open(task_named(env, args.task))
        json_io.write([conversation.call(call).shown for call in calls])
        return 0
    if args.env != "bfcl":
        own = session_named(args.env, json_io.read_file(args.config, "state") if args.config else {})
        json_io.write([own.call(call).raw for call in calls])
        return 0
    classes = list(dict.fromkeys(name.strip() for name in args.classes.split(",") if name.strip()))
    config = json_io.read_file(args.config, "initial config") if args.config else {}
    check_classes(classes, config, args.long_context)
    from seal.env.bfcl.session import BfclSession

    session = BfclSession(classes, config, args.long_context)
    json_io.write([session.call(call).raw for call in calls])
    return 0


def refuse_unused(args: argparse.Namespace, kind: str) -> None:
    """Raises ParamError for an option that says nothing to an environment of this kind."""
    for name, kinds in APPLIES.items():
        if vars(args)[name] and kind not in kinds:
            remedy = f"it applies to {' and '.join(kinds)} alone: leave it out"
            raise ParamError(f"--{name.replace('_', '-')}", f"given with --env {args.env}", remedy)


def check_classes(classes: list[str], config: Json, long_context: bool) -> None:
    """Raises ParamError for no or unknown classes, and for a config that a class cannot start from."""
    from seal.env.bfcl.instances import instances
    from seal.env.bfcl.package import MODULES

    known = f"known classes: {', '.join(MODULES)}"
    if not classes:
        raise ParamError("--classes", "no class", known)
    if not isinstance(config, dict):
        raise ParamError("initial config", type(config).__name__, CONFIG_SHAPE)
    for thing, names in (("--classes", classes), ("initial config", config)):
        if unknown := next((name for name in names if name not in MODULES), None):
            raise ParamError(thing, unknown, known)
    for name, scenario in config.items():
        if not isinstance(scenario, dict):
            raise ParamError(f"initial config of {name}", type(scenario).__name__, CONFIG_SHAPE)
    for name in classes:
        try:
            instances([name], config, long_context)
        except SealError:
            raise
        except Exception:  # the class's own loader is not written to say what it lacks
            raise ParamError(f"initial config of {name}", "not of the shape the class loads", CONFIG_SHAPE) from None


def calls_of(value: Json) -> list[Call]:
    """Raises ParamError naming the first entry that is no call."""
    if not isinstance(value, list):
        raise ParamError("standard input", type(value).__name__, f"give {SHAPE}")
    calls = []
    for number, entry in enumerate(value):
        arguments = entry.get("arguments", {}) if isinstance(entry, dict) else None
        whole = isinstance(arguments, dict) and isinstance(entry.get("name"), str)
        if not whole or set(entry) - {"name", "arguments"}:
            raise ParamError(f"call {number}", repr(entry)[:80], f"give {SHAPE}")
        calls.append(Call(entry["name"], arguments))
    return calls
