"""Plain Python functions as tools of an agent loop: schemas for the model, one method that runs what it asks for."""

import functools
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from seal.core.errors import ParamError
from seal.core.types import Call, Json, Mode, ToolDoc
from seal.env.custom.plain_json import to_json
from seal.env.custom.signature import Refused, bind, doc_of
from seal.integrations.guide import Guide, by_name, checked_tools, described
from seal.interface.export import noted, openai_tools
from seal.interface.state import InterfaceState

_REMEDY = "give a function: def name(key: str) -> str, which may call what you have"


class PlainTools:
    """Functions with type hints under a learning interface.

    Raises ParamError for one that cannot be a tool, for two of one name, and for what is no interface.
    """

    def __init__(self, functions: Iterable[Callable[..., Any]], state: InterfaceState, mode: Mode = "full"):
        functions = checked_tools(functions, Callable, _REMEDY)
        self._functions = by_name(functions, [_name_of(function) for function in functions])
        self._bare = tuple(doc_of(name, function) for name, function in self._functions.items())
        self._state, self._mode = state, mode
        self.guide = Guide(self._bare, state, mode)

    def schemas(self) -> list[Json]:
        """The `tools` of a chat completion (OpenAI's form, which most servers take)."""
        return openai_tools(self._bare, self._state, self._mode)

    def call(self, name: str, arguments: Mapping[str, Json] | str) -> str:
        """Run one call of the model (arguments as a mapping or as its JSON text); every fault is text for the model."""
        try:
            given = json.loads(arguments) if isinstance(arguments, str) else arguments
        except ValueError as error:
            return self.guide.after(name, {}, f"error: arguments are no JSON: {error}", "other")
        if not isinstance(given, Mapping):
            return self.guide.after(name, {}, "error: arguments are no JSON object", "wrong_type")
        if name not in self._functions:
            return self.guide.after(name, given, f"error: there is no tool {name}", "unknown_tool")
        try:
            value = self._functions[name](**bind(Call(name, given), self._functions[name]))
        except Refused as error:
            return self.guide.after(name, given, f"error: {error}", error.kind)
        except Exception as error:  # whatever a tool raises is what the model reads
            return self.guide.after_exception(name, given, error)
        return self.guide.after(name, given, _as_text(value))

    def functions(self) -> list[Callable[..., Any]]:
        """The functions for frameworks that take them as they are: evolved docstrings, errors as text with recovery."""
        return [self._wrapped(function, self.guide.docs[name]) for name, function in self._functions.items()]

    def _wrapped(self, function: Callable[..., Any], doc: ToolDoc) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            named = {**dict(zip(inspect.signature(function).parameters, args, strict=False)), **kwargs}
            try:
                value = function(*args, **kwargs)
            except Exception as error:  # whatever a tool raises is what the model reads
                return self.guide.after_exception(doc.name, named, error)
            text = _as_text(value)
            shown = self.guide.after(doc.name, named, text)
            return value if shown == text else shown

        wrapped.__doc__ = _docstring(doc)
        return wrapped


def _name_of(function: Callable[..., Any]) -> str:
    """What a model calls it by. Raises ParamError for a class, and for what has no name or no signature."""
    name = getattr(function, "__name__", "")
    if inspect.isclass(function) or not isinstance(name, str) or not name.isidentifier():
        raise ParamError("tool", described(function), _REMEDY)
    try:
        inspect.signature(function)
    except ValueError as error:  # some of those written in C
        raise ParamError(f"tool {name}", str(error), _REMEDY) from None
    return name


def _docstring(doc: ToolDoc) -> str:
    """Google style, which frameworks that read docstrings know."""
    lines = [f"    {p.name}: {noted(p.description, doc, p.name)}".rstrip(": ") for p in doc.params]
    return "\n".join([noted(doc.description, doc, ""), *(["", "Args:", *lines] if lines else [])])


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(to_json(value), ensure_ascii=False)
