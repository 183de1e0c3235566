"""A Python function as a tool: its doc from hints and docstring, and its arguments checked against the hints."""

import inspect
import json
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, get_type_hints

from seal.core.errors import ParamError
from seal.core.types import Call, ToolDoc
from seal.env.custom.plain_json import to_json
from seal.tools.docs import tool_doc

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Refused(Exception):
    """A call that failed, as data: `kind` is one of ERROR_KINDS."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


def doc_of(name: str, tool: Callable[..., Any]) -> ToolDoc:
    """A tool's doc. Docstrings may be in Google, NumPy or Sphinx style. Raises ParamError for what cannot be one."""
    from docstring_parser import parse

    if inspect.iscoroutinefunction(tool) or inspect.isasyncgenfunction(tool):
        raise ParamError(f"tool {name}", "it is async", "write a plain function that calls asyncio.run inside")
    if inspect.isgeneratorfunction(tool):  # calling it runs none of it
        raise ParamError(f"tool {name}", "it is a generator", "return a list instead of `yield`")
    hints, docstring = hints_of(name, tool), parse(inspect.getdoc(tool) or "")
    descriptions = {param.arg_name: param.description or "" for param in docstring.params}
    properties, required, shared = {}, [], {}
    for position, (key, parameter) in enumerate(inspect.signature(tool).parameters.items()):
        if not position and key in ("self", "cls"):
            continue
        place = f"tool {name}, parameter {key}"
        if parameter.kind not in _BY_NAME:
            raise ParamError(place, str(parameter), "every parameter must go by its name")
        if key not in hints:
            remedy = f"write {key}: str (or its type), or let the function's name begin with _ if it is no tool"
            raise ParamError(place, "no type hint", remedy)
        schema = _schema(place, hints[key])
        shared |= schema.pop("$defs", {})
        if parameter.default is parameter.empty:
            required.append(key)
        else:
            schema["default"] = to_json(parameter.default)
        properties[key] = {**schema, **({"description": descriptions[key]} if descriptions.get(key) else {})}
    words = " ".join(filter(None, (docstring.short_description, docstring.long_description)))
    return tool_doc(name, words, {"properties": properties, "required": required, "$defs": shared})


def bind(call: Call, tool: Callable[..., Any]) -> dict[str, Any]:
    """Arguments as the hints want them (an Enum, a dataclass). Raises Refused for the first that does not fit.

    Strict, as JSON: a number in quotes is no number.
    """
    from pydantic import ValidationError

    hints, parameters = hints_of(call.name, tool), inspect.signature(tool).parameters
    for name in call.arguments:
        if name not in parameters:
            raise Refused("unexpected_argument", f"unexpected argument {name}")
    for name, parameter in parameters.items():
        if name not in call.arguments and parameter.default is parameter.empty:
            raise Refused("missing_argument", f"missing argument {name}")
    bound = {}
    for name, value in call.arguments.items():
        try:
            bound[name] = _adapter_of(hints[name]).validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            kind = "wrong_type" if first["type"].endswith("_type") else "invalid_value"
            raise Refused(kind, f"argument {name}: {first['msg']}") from None
    return bound


def hints_of(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    """Resolved type hints. Raises ParamError where one names what is not there."""
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError, SyntaxError) as error:
        raise ParamError(f"type hints of {name}", str(error), "import or define what they name") from None


def _schema(place: str, hint: Any) -> dict[str, Any]:
    from pydantic.errors import PydanticUserError

    try:
        return _adapter_of(hint).json_schema()
    except (PydanticUserError, TypeError) as error:
        value = f"{hint}: {str(error).splitlines()[0]}"
        remedy = "use what JSON can hold: str, int, float, bool, list, dict, Literal, Enum, X | None, a dataclass"
        raise ParamError(place, value, remedy) from None


def _adapter_of(hint: Any) -> "TypeAdapter":
    """Kept for hints that are the same in every run of a module (str, Literal[...]); a class of its own is new."""
    try:
        return _adapter(hint)
    except TypeError:  # metadata without a hash
        return _adapter.__wrapped__(hint)


@lru_cache(256)
def _adapter(hint: Any) -> "TypeAdapter":
    from pydantic import TypeAdapter

    return TypeAdapter(hint)
