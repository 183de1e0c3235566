"""Fresh instances of BFCL's environment classes that share nothing a call can change.

The official modules keep mutable things at module level: function defaults (post_tweet's lists) and the long-context
extensions that instances hand out and write to. A module with any is run anew, in a namespace of its own, for every
world; the others keep their state in instances alone and are run once.
"""

import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from types import FunctionType
from typing import Any

from seal.core.errors import ParamError
from seal.core.types import Json
from seal.env.bfcl.package import MODULES, WORLDS, code
from seal.env.bfcl.plain import copied

_EXTENSIONS = "long_context"
_STATELESS = "MathAPI"  # has no scenario to load
_COPIED_ON_LOAD = "DEFAULT_STATE"  # the official _load_scenario deep-copies it


def instances(classes: Sequence[str], config: Mapping[str, Json], long_context: bool) -> dict[str, Any]:
    """`{class: instance}` with its scenario loaded. Raises ParamError for an unknown class."""
    made = {}
    for name in classes:
        made[name] = _class(name, long_context)()
        if name != _STATELESS:
            made[name]._load_scenario(copied(config.get(name, {})), long_context=long_context)
    return made


@cache
def signatures(name: str) -> dict[str, tuple[str, ...]]:
    """`{tool: parameters in positional order}` of one class: its public methods."""
    methods = inspect.getmembers(_shared(name), inspect.isfunction)
    return {tool: tuple(inspect.signature(f).parameters)[1:] for tool, f in methods if not tool.startswith("_")}


def _class(name: str, long_context: bool) -> type:
    if name not in MODULES:
        raise ParamError("BFCL class", name, f"known classes: {', '.join(MODULES)}")
    shared = _shared(name)
    return _run(name)[name] if _leaks(name, long_context) else shared


@cache
def _shared(name: str) -> type:
    return _run(name)[name]


def _run(name: str) -> dict[str, Any]:
    """A new namespace of the class's module, the extensions it imported made anew too."""
    space = {"__name__": f"{WORLDS}.{MODULES[name]}", "__builtins__": __builtins__}
    exec(code(MODULES[name]), space)  # the installed package's own source, never text of a policy
    if any(key in _extensions() for key in space):
        fresh: dict[str, Any] = {"__name__": f"{WORLDS}.{_EXTENSIONS}"}
        exec(code(_EXTENSIONS), fresh)
        space.update({key: fresh[key] for key in _extensions() if key in space})
    return space


@cache
def _extensions() -> frozenset[str]:
    space: dict[str, Any] = {}
    exec(code(_EXTENSIONS), space)
    return frozenset(key for key, value in space.items() if isinstance(value, dict | list) and key.isupper())


@cache
def _leaks(name: str, long_context: bool) -> bool:
    functions = [f for f in vars(_shared(name)).values() if isinstance(f, FunctionType)]
    defaults = [value for f in functions for value in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values())]
    constants = {key: value for key, value in functions[0].__globals__.items() if key.isupper()}
    held = [
        value
        for key, value in constants.items()
        if key != _COPIED_ON_LOAD and (long_context or key not in _extensions())
    ]
    return any(isinstance(value, dict | list | set) for value in (*defaults, *held))
