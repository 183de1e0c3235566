"""JSON in and out of the single-shot verbs."""

import argparse
import io
import json
import math
import sys
from pathlib import Path

from seal.core.errors import ArtifactError, ParamError
from seal.core.types import Json


def describe_stdin(parser: argparse.ArgumentParser, shape: str, example: str) -> None:
    """Let a verb's help say what it reads, with one command to try."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"standard input: {shape}\n\nexample:\n  {example}"


def parsed(text: str) -> Json:
    """The JSON value of a text. Raises ValueError, also for what Python's reader adds to JSON: NaN and infinities."""
    return json.loads(text, parse_constant=_no_constant, parse_float=_finite)


def _no_constant(name: str) -> Json:
    raise ValueError(f"{name} is no JSON value")


def _finite(digits: str) -> float:
    if not math.isfinite(value := float(digits)):
        raise ValueError(f"{digits[:20]} is out of range")
    return value


def read_text() -> str:
    """All of standard input. Raises ParamError where it is no UTF-8."""
    if isinstance(sys.stdin, io.TextIOWrapper):  # whatever the locale says
        sys.stdin.reconfigure(encoding="utf-8", errors="strict")
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise ParamError("standard input", str(error), "give UTF-8 text") from None


def read_stdin(shape: str) -> Json:
    """The JSON value on standard input; `shape` says what it should be. Raises ParamError."""
    text = read_text()
    try:
        return parsed(text)
    except (ValueError, RecursionError) as error:
        found = f"no JSON: {error}" if text.strip() else "empty"
        raise ParamError("standard input", found, f"give {shape}") from None


def read_file(path: Path, thing: str) -> Json:
    """The JSON value of a file. Raises ArtifactError."""
    try:
        return parsed(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"no JSON: {error}"
        raise ArtifactError(thing, f"{path}: {reason}", "give a readable JSON file") from None


def write(value: Json) -> None:
    """One line of JSON on standard output."""
    print(json.dumps(value))
