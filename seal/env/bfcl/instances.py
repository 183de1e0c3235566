"""Fresh instances of BFCL's environment classes that share nothing a call can change.

The official modules keep mutable things at module level: defaults of parameters (post_tweet's lists) and the records
of long contexts, which instances hand out and write to. A scenario is loaded once, by the official loader on private
copies of these; every world starts from a copy of what it left. A tool that could reach such things runs on private
copies too.
"""

import marshal
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from random import Random
from types import CodeType, FunctionType, MappingProxyType, MethodType
from typing import Any

from seal.core.errors import ParamError
from seal.core.types import Json
from seal.env.bfcl.dispatch import public_methods
from seal.env.bfcl.package import EXTENSIONS, MODULES, module
from seal.env.bfcl.values import copied

_STATELESS = "MathAPI"  # has no scenario to load
_COPIED_ON_LOAD = "DEFAULT_STATE"  # the official _load_scenario deep-copies it
_MUTABLE = (dict, list, set)
_LOADERS = ("__init__", "_load_scenario")


def instances(classes: Sequence[str], config: Mapping[str, Json], long_context: bool) -> dict[str, Any]:
    """`{class: instance}` with its scenario loaded. Raises ParamError for an unknown class."""
    return {name: _instance(name, config.get(name, {}), bool(long_context)) for name in classes}


@cache
def signatures(name: str) -> Mapping[str, tuple[str, ...]]:
    """`{tool: parameters in positional order}` of one class: its public methods."""
    return MappingProxyType(public_methods(_shared(name)))


@cache
def reaching(name: str, long_context: bool) -> frozenset[str]:
    """The tools of a class that could change something its instances share."""
    return frozenset(tool for tool in signatures(name) if _reach(name, long_context, (tool,))[0])


def own_method(part: Any, name: str, long_context: bool, tool: str, space: dict[str, Any]) -> Callable[..., Any]:
    """A tool of an instance, on copies of all it could reach beside the instance; `space` keeps those of this instance.

    Called once a tool and instance.
    """
    if _reach(name, long_context, (tool,))[0] == (tool,):
        _fill(space, name, long_context, (tool,))
        return MethodType(_rebound(getattr(_shared(name), tool), space), part)
    part.__class__ = _private(type(part), name, long_context, (tool,), space)
    return getattr(part, tool)


def _instance(name: str, scenario: Json, long_context: bool) -> Any:
    shared = _shared(name)
    if name == _STATELESS:
        return shared()
    start = _start(name, marshal.dumps(scenario, 2), long_context)  # 2: no marks of shared objects, equal bytes
    if start is None:
        return _loaded(name, copied(scenario), long_context)
    part, (state, generators) = shared.__new__(shared), start
    part.__dict__.update(marshal.loads(state))
    for attribute, position in generators.items():
        generator = Random.__new__(Random)
        generator.setstate(position)
        part.__dict__[attribute] = generator
    return part


@lru_cache(maxsize=4096)
def _start(name: str, scenario: bytes, long_context: bool) -> tuple[bytes, Mapping[str, tuple]] | None:
    """What loading leaves in an instance: plain attributes and generators; None where it is more than that."""
    held = vars(_loaded(name, marshal.loads(scenario), long_context))
    generators = {key: value.getstate() for key, value in held.items() if type(value) is Random}
    try:
        return marshal.dumps({key: value for key, value in held.items() if key not in generators}), generators
    except ValueError:
        return None


def _loaded(name: str, scenario: Json, long_context: bool) -> Any:
    """Raises whatever the official loader raises on a broken scenario."""
    part = _private(_shared(name), name, long_context, _LOADERS, {})()
    part._load_scenario(scenario, long_context=long_context)
    part.__class__ = _shared(name)
    return part


@cache
def _shared(name: str) -> type:
    if name not in MODULES:
        raise ParamError("BFCL class", name, f"known classes: {', '.join(MODULES)}")
    return vars(module(MODULES[name]))[name]


def _private(base: type, name: str, long_context: bool, methods: tuple[str, ...], space: dict[str, Any]) -> type:
    """A subclass whose `methods`, and all they call, use containers of `space`; the class itself if they use none."""
    if not _reach(name, long_context, methods)[0]:
        return base
    functions = _fill(space, name, long_context, methods)
    body = {key: getattr(base, key) for key in functions}
    body = {key: _rebound(found, space) for key, found in body.items() if found.__globals__ is not space}
    return type(name, (base,), {"__module__": base.__module__, "__qualname__": name, **body})


def _fill(space: dict[str, Any], name: str, long_context: bool, methods: tuple[str, ...]) -> tuple[str, ...]:
    """Copy into `space` what `methods` could reach and it does not hold yet; the methods that use it."""
    functions, containers = _reach(name, long_context, methods)
    shared = vars(module(MODULES[name]))
    if not space:
        space.update(shared)
    space.update({key: _deep_copy(shared[key]) for key in containers if space[key] is shared[key]})
    return functions


def _deep_copy(value: Any) -> Any:
    """A deep copy of a container of a module. Most hold no other container, and a shallow one will do."""
    if id(value) in _flat():
        return value.copy()
    if isinstance(value, dict):
        return {key: _deep_copy(item) if isinstance(item, _MUTABLE) else item for key, item in value.items()}
    return [_deep_copy(item) if isinstance(item, _MUTABLE) else item for item in value]


@cache
def _flat() -> frozenset[int]:
    """Ids of the modules' containers that hold no other container; they live as long as the process."""
    found, queue = set(), [value for name in MODULES for value in _containers(name, True).values()]
    while queue:
        value = queue.pop()
        inner = [item for item in (value.values() if isinstance(value, dict) else value) if isinstance(item, _MUTABLE)]
        queue += inner
        if not inner:
            found.add(id(value))
    return frozenset(found)


def _rebound(function: FunctionType, space: dict[str, Any]) -> FunctionType:
    defaults = copied(function.__defaults__)
    made = FunctionType(function.__code__, space, function.__name__, defaults, function.__closure__)
    made.__kwdefaults__ = copied(function.__kwdefaults__)
    return made


@cache
def _reach(name: str, long_context: bool, methods: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which methods, called from `methods`, use a container of the module or of their defaults; those of the module."""
    shared, containers = _shared(name), _containers(name, long_context)
    seen, queue, functions, used = set(methods), list(methods), [], set()
    while queue:
        found = vars(shared).get(queue.pop())
        if not isinstance(found, FunctionType):
            continue
        names = set(_names(found.__code__))
        defaults = (*(found.__defaults__ or ()), *(found.__kwdefaults__ or {}).values())
        if names & containers.keys() or any(isinstance(value, _MUTABLE) for value in defaults):
            functions.append(found.__name__)
            used |= names & containers.keys()
        queue += names - seen
        seen |= names
    return tuple(sorted(functions)), tuple(sorted(used))


def _containers(name: str, long_context: bool) -> dict[str, Any]:
    """The mutable values at module level. The padding is used by long-context worlds alone."""
    padding = vars(module(EXTENSIONS))
    return {
        key: value
        for key, value in vars(module(MODULES[name])).items()
        if isinstance(value, _MUTABLE)
        and not key.startswith("__")
        and key != _COPIED_ON_LOAD
        and (long_context or key not in padding)
    }


def _names(code: CodeType) -> Iterator[str]:
    """Every name that a function's code uses, inner functions included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
