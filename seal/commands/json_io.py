"""JSON in and out of the single-shot verbs."""

import json
import sys
from pathlib import Path

from seal.core.errors import ArtifactError, ParamError
from seal.core.types import Json


def read_text() -> str:
    """All of standard input. Raises ParamError where it is no UTF-8."""
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise ParamError("standard input", str(error), "give UTF-8 text") from None


def read_stdin(shape: str) -> Json:
    """The JSON value on standard input; `shape` says what it should be. Raises ParamError."""
    text = read_text()
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        found = f"no JSON: {error}" if text.strip() else "empty"
        raise ParamError("standard input", found, f"give {shape}") from None


def read_file(path: Path, thing: str) -> Json:
    """The JSON value of a file. Raises ArtifactError."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or f"no JSON: {error}"
        raise ArtifactError(thing, f"{path}: {reason}", "give a readable JSON file") from None


def write(value: Json) -> None:
    """One line of JSON on standard output."""
    print(json.dumps(value))
