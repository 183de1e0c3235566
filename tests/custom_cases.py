"""A module of tools with everything in it, and tasks for it: what the tests of custom environments share."""

from pathlib import Path

from seal.env import load_env
from seal.env.custom import CustomEnv

DESK = "examples.library_desk.tools:LibraryDesk"
TASKS = """
- id: one
  turns: [{user: add it, gold: ['put("a", 2)']}]
- id: two
  turns: [{user: add it, gold: [{name: put, arguments: {key: b}}]}]
- id: three
  turns: [{user: hello}, {user: add it, gold: ['put(key="c")']}]
"""
TOOLS = '''
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Literal

from pydantic import Field

LIMIT = 5
box: dict[str, int] = {}
_secret = [0]


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


@dataclass
class Point:
    x: int
    y: int = 0


class Closed(Exception):
    error_kind = "precondition"


def put(key: str, n: int = 1) -> dict:
    """Put something into the box.

    Parameters
    ----------
    key : str
        Where it goes.
    n : int
        How many.
    """
    if n > LIMIT:
        raise ValueError("too many")
    box[key] = box.get(key, 0) + n
    return {"now": box[key]}


def shape(size: Size, at: Point, kind: Literal[1, 2] = 1, tags: list[str] | None = None, any: int | str = 0) -> str:
    """Draw.

    :param size: How large.
    """
    return f"{size is Size.SMALL} {at.x} {at.y} {kind} {tags} {any}"


def grow(by: Annotated[int, Field(ge=1)]) -> None:
    _secret[0] += by


def fail(how: str) -> str:
    """Raise."""
    errors = {"key": KeyError("k"), "permission": PermissionError("no"), "own": Closed("shut"), "type": TypeError("t"),
              "exit": SystemExit(1), "text": RuntimeError("door not found"), "other": RuntimeError("hm")}
    print("noise")
    raise errors[how]


def told(ok: bool) -> dict:
    return {"value": 1} if ok else {"error": "permission denied"}


def forever() -> None:
    while True:
        pass


def deep(n: int) -> int:
    return deep(n + 1)


def long() -> str:
    return "x" * 200_000
'''


def env_of(folder: Path, tools: str = TOOLS, tasks: str | None = TASKS, name: str = "", **options) -> CustomEnv:
    name = name or f"tools_{folder.name}"
    module, _, maker = name.partition(":")
    (folder / f"{module}.py").write_text(tools)
    if tasks is not None:
        (folder / "tasks.yaml").write_text(tasks)
    return load_env("custom", module=f"{module}:{maker}" if maker else module, **options)


def session(env: CustomEnv, state: dict | None = None):
    return env.tools.open(state or {})
