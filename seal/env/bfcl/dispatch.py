"""The tools of a class, and one literal call on one object, its result worded as the official executor words it."""

import copy
import inspect
import json
from collections.abc import Collection
from operator import methodcaller
from typing import Any

from seal.core.types import Call, Result
from seal.tools.error_kinds import error_kind

FAILED = "Error during execution: "
FORBIDDEN = frozenset(("kill", "exit", "quit", "remove", "unlink", "popen", "Popen", "run"))


def public_methods(owner: type) -> dict[str, tuple[str, ...]]:
    """`{tool: parameters in positional order}` of a class."""
    methods = inspect.getmembers(owner, inspect.isfunction)
    return {tool: tuple(inspect.signature(f).parameters)[1:] for tool, f in methods if not tool.startswith("_")}


def no_tool(name: str, tools: Collection[str]) -> str:
    """What the official executor says of a name that is none of `tools`; "" for one that is."""
    if name in FORBIDDEN:
        return f"{FAILED}Function call {name} is not allowed."
    return "" if name in tools else f"{FAILED}name '{name}' is not defined"


def called(owner: Any, tools: Collection[str], call: Call) -> Result:
    """Run `call` on `owner` where it is one of `tools`; every fault is a result."""
    if unknown := no_tool(call.name, tools):
        return result_of(unknown, "unknown_tool")
    try:
        return result_of(worded(methodcaller(call.name, **copy.deepcopy(dict(call.arguments)))(owner)))
    except Exception as error:  # whatever the tool raises is what the policy reads, as officially
        raw = f"{FAILED}{error}"
        return result_of(raw, error_kind(raw) or "other")


def result_of(raw: str, kind: str | None = None) -> Result:
    return Result(raw, raw, error_kind(raw) if kind is None else kind)


def worded(value: Any) -> str:
    if type(value) is dict:
        try:
            return json.dumps(value)
        except Exception:  # the official executor falls back on anything
            return str(value)
    return value if type(value) is str else str(value)
