"""`seal parse`: the calls of a policy's text, as JSON."""

import argparse
import sys
from pathlib import Path

from seal.commands import json_io

EXAMPLE = "seal parse --format pythonic <<< '[add(a=1, b=2)]'"
FORMATS = ("pythonic", "qwen_xml", "llama_json", "openai", "words")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    json_io.describe_stdin(parser, "what the policy wrote, UTF-8 text", EXAMPLE)
    parser.add_argument("--format", required=True, choices=FORMATS, help="how the policy writes calls")
    parser.add_argument("--mode", choices=("strict", "lenient"), default="strict",
                        help="lenient repairs what is plain, words apart (default: %(default)s)")  # fmt: skip
    parser.add_argument(
        "--schema",
        type=Path,
        metavar="FILE",
        help="of pythonic and words, binds positionals and types:"
        ' {"tool": ["parameter", ...]}, {"tool": {"parameter": "type"}} or JSON-schema tools',
    )


def run(args: argparse.Namespace) -> int:
    """Text on standard input; `{"calls", "errors", "end_of_turn"}` on standard output, repairs on standard error."""
    from seal.tools.parse import parse

    schema = json_io.read_file(args.schema, "tool schema") if args.schema else None
    parsed = parse(json_io.read_text(), args.format, schema, args.mode)
    json_io.write(
        {
            "calls": [{"name": call.name, "arguments": dict(call.arguments)} for call in parsed.calls],
            "errors": [{"kind": error.kind, "message": error.message} for error in parsed.errors],
            "end_of_turn": parsed.end_of_turn,
        }
    )
    if parsed.repairs:
        print(f"repaired: {', '.join(parsed.repairs)}", file=sys.stderr)
    for option, given, formats in (
        ("--schema", args.schema, ("pythonic", "words")),  # in JSON arguments have their names and types
        ("--mode lenient", args.mode == "lenient", [name for name in FORMATS if name != "words"]),
    ):
        if given and args.format not in formats:
            print(f"unused: {option} applies to {', '.join(formats)} alone, not to {args.format}", file=sys.stderr)
    return 0
