"""Tools that are Python: the functions of a module, or the methods of what a class or a function of it makes.

The module runs anew for every rollout, so no variable, default or class attribute of it is shared between two.
"""

import contextlib
import inspect
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from seal.core.errors import ParamError
from seal.core.types import ERROR_KINDS, Call, Json, Result
from seal.env.base import Session
from seal.env.custom.plain_json import attributes, is_opaque, to_json
from seal.env.custom.signature import Refused, bind, doc_of, hints_of
from seal.env.custom.source import SECONDS, Source
from seal.env.limit import TimedOut, time_limit
from seal.tools.error_kinds import error_kind

MAX_RESULT = 100_000  # characters
STATE = "state"  # a function or method of this name is no tool: it tells the public state
_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (PermissionError, "permission"),
    ((LookupError, FileNotFoundError), "not_found"),
    (TimeoutError, "timeout"),
)


class PythonTools:
    """The tools of `my_pkg.my_tools` or `my_pkg.my_tools:Name`. Raises ParamError for whatever cannot be used.

    `root`: a folder to import from, beside what is installed; `seconds` of computing: a call may take.
    """

    def __init__(self, path: str, seconds: float, root: Path):
        self._path, self._seconds = path, seconds
        name, _, self._maker = path.partition(":")
        self._source = Source(name, root)
        self.folder, self.digest, self.function = self._source.folder, self._source.digest, self._source.function
        self.docs = tuple(doc_of(name, tool) for name, tool in self._tools(self._source.run()).items())
        self._names = frozenset(doc.name for doc in self.docs)

    def open(self, state: Mapping[str, Json]) -> "PythonSession":
        """A fresh world. Raises ParamError for a state it does not take."""
        module, state = self._source.run(), json.loads(json.dumps(state))
        world = self._made(module, state) if self._maker else _with_variables(module, state)
        return PythonSession(world, self._names, self._seconds)

    def _tools(self, module: ModuleType) -> dict[str, Callable[..., Any]]:
        own = {name: item for name, item in vars(module).items() if getattr(item, "__module__", "") == module.__name__}
        members = _members(self._owner(module)) if self._maker else own
        public = {name: member for name, member in members.items() if not name.startswith("_") and name != STATE}
        tools = {name: member for name, member in public.items() if inspect.isfunction(member)}
        if not tools:
            classes = [f"{module.__name__}:{name}" for name, item in own.items() if inspect.isclass(item)]
            remedy = f"name a class: {classes[0]}" if classes and not self._maker else "define one"
            raise ParamError("tools", f"{self._path} has no public function", remedy)
        return tools

    def _owner(self, module: ModuleType) -> type:
        maker = vars(module).get(self._maker)
        owner = hints_of(self._maker, maker).get("return") if inspect.isfunction(maker) else maker
        if not inspect.isclass(owner):
            problem = "is not there" if maker is None else "is no class, and no function with a class as return hint"
            remedy = "name a class, or a function that returns one's object"
            raise ParamError("tools", f"{self._path} {problem}", remedy)
        return owner

    def _made(self, module: ModuleType, state: Mapping[str, Json]) -> Any:
        try:
            with time_limit(SECONDS), contextlib.redirect_stdout(sys.stderr):
                return vars(module)[self._maker](**state)
        except (Exception, SystemExit, TimedOut) as error:  # whatever the user's class raises
            value = f"{self._maker}({', '.join(state)}): {type(error).__name__}: {error}"
            raise ParamError("state", value, f"its keys are the arguments of {self._maker}") from error


class PythonSession(Session):
    """One world: a module, or an object."""

    def __init__(self, world: Any, names: frozenset[str], seconds: float):
        self._world, self._names, self._seconds = world, names, seconds

    def call(self, call: Call) -> Result:
        try:
            text, kind = self._run(call)
        except Refused as error:
            text, kind = f"error: {error}", error.kind
        return result_of(text, kind)

    def state(self) -> dict[str, Json]:
        if callable(method := getattr(self._world, STATE, None)):
            return _own_state(method)
        found = variables(self._world) if isinstance(self._world, ModuleType) else attributes(self._world)
        return {name: to_json(value) for name, value in found.items()}

    def _run(self, call: Call) -> tuple[str, str]:
        if call.name not in self._names:
            raise Refused("unknown_tool", f"there is no tool {call.name}")
        tool = getattr(self._world, call.name)
        arguments = bind(call, tool)
        try:
            # what a tool prints must not mix with what the command line answers
            with time_limit(self._seconds), contextlib.redirect_stdout(sys.stderr):
                value = tool(**arguments)
                text = value if isinstance(value, str) else json.dumps(to_json(value), ensure_ascii=False)
        except TimedOut:
            raise Refused("timeout", f"{call.name} ran for more than {self._seconds:g} seconds") from None
        except (Exception, SystemExit) as error:  # whatever a tool raises is what the policy reads
            raise Refused(kind_of(error), message_of(error)) from error
        complains = isinstance(value, Mapping) and value.get("error")
        return text, (error_kind(text) or "other") if complains else ""


def _own_state(method: Callable[[], Any]) -> dict[str, Json]:
    """What the user's own `state` says. Raises ParamError for whatever it raises."""
    try:
        with time_limit(SECONDS), contextlib.redirect_stdout(sys.stderr):
            return to_json(dict(method()))
    except (Exception, SystemExit, TimedOut) as error:
        value = f"{STATE}(): {type(error).__name__}: {error}"
        raise ParamError("state", value, "it must return a dict, whatever was called before") from error


def result_of(text: str, kind: str) -> Result:
    """A result as the policy reads it; one that is too long is an error."""
    if len(text) > MAX_RESULT:
        text, kind = f"error: the result has {len(text)} characters, over {MAX_RESULT}", "other"
    return Result(text, text, kind)


def kind_of(error: BaseException) -> str:
    """An exception's own `error_kind`, else what its class says, else its words."""
    if getattr(error, "error_kind", None) in ERROR_KINDS:
        return error.error_kind
    by_class = next((kind for classes, kind in _KINDS if isinstance(error, classes)), "")
    kind = by_class or error_kind(f"error: {message_of(error)}") or "other"
    return "invalid_value" if kind == "other" and isinstance(error, ValueError) else kind


def message_of(error: BaseException) -> str:
    """An exception's words (a KeyError puts them in quotes), or its class's name."""
    alone = error.args[0] if len(error.args) == 1 and isinstance(error.args[0], str) else str(error)
    return alone or type(error).__name__


def variables(module: ModuleType) -> dict[str, Any]:
    """Public data of a module: no constants (UPPER_CASE), nothing that is called, nothing of the standard library."""
    public = {name: v for name, v in vars(module).items() if not name.startswith("_") and not name.isupper()}
    return {name: value for name, value in public.items() if not callable(value) and not is_opaque(value)}


def _with_variables(module: ModuleType, state: Mapping[str, Json]) -> ModuleType:
    known = variables(module)
    for name, value in state.items():
        if name not in known:
            remedy = f"its keys are public variables of the module: {', '.join(known) or 'there are none'}"
            raise ParamError("state", name, remedy)
        setattr(module, name, value)
    return module


def _members(owner: type) -> dict[str, Any]:
    """Functions of a class, those of its bases first, each in the order of definition."""
    names = dict.fromkeys(name for kind in reversed(owner.__mro__[:-1]) for name in vars(kind))
    found = {name: inspect.getattr_static(owner, name) for name in names}
    return {name: getattr(member, "__func__", member) for name, member in found.items()}
