"""Python literals and calls of literals, read from a syntax tree: nothing is evaluated."""

import ast
import math
import warnings
from collections.abc import Mapping
from types import MappingProxyType

from seal.core.types import Call, Json
from seal.tools.schema import Signature

MAX_TEXT = 100_000  # characters of one policy output
MAX_DEPTH = 40
TOO_LONG = 10**4300  # an integer of more digits cannot be written as text again
NO_NAMES: Mapping[str, Json] = MappingProxyType({})


class NotACall(ValueError):
    """Why a piece of text is no call; `kind` goes into the CallError. The message, which may quote the text, is short
    and can be written anywhere."""

    def __init__(self, kind: str, message: str):
        super().__init__(message.encode("utf-8", "backslashreplace").decode()[:200])
        self.kind = kind


def tree_of(text: str) -> ast.expr:
    """The expression a text holds. Raises NotACall(syntax)."""
    if len(text) > MAX_TEXT:
        raise NotACall("syntax", f"longer than {MAX_TEXT} characters")
    try:
        with warnings.catch_warnings():  # on odd escapes and the like: no business of who runs this
            warnings.simplefilter("ignore")
            return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise NotACall("syntax", "not a Python expression") from None  # Python's own words change with its version


def literal(node: ast.expr, names: Mapping[str, Json] = NO_NAMES) -> Json:
    """The value of a literal node: constants, signed numbers, lists, tuples, dicts. Raises NotACall(not_literal).

    `names`: bare names that stand for a value, for text that mixes languages (`true`).
    """
    return storable(_literal(node, 0, names))


def storable(value: Json, depth: int = 0) -> Json:
    """The value itself, if JSON and UTF-8 can hold it. Raises NotACall(not_literal): nested too deeply, a number that
    is not finite or too long, half a surrogate pair, a key that is no plain value."""
    if depth > MAX_DEPTH:
        raise NotACall("not_literal", "nested too deeply")
    no_number = isinstance(value, float) and not math.isfinite(value)
    if no_number or (isinstance(value, int) and abs(value) >= TOO_LONG):
        raise NotACall("not_literal", "a number out of range")
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        raise NotACall("not_literal", "a text with half a surrogate pair")
    if isinstance(value, dict):
        for key, item in value.items():
            storable(key, MAX_DEPTH)
            storable(item, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            storable(item, depth + 1)
    return value


def _literal(node: ast.expr, depth: int, names: Mapping[str, Json]) -> Json:
    if depth > MAX_DEPTH:
        raise NotACall("not_literal", "nested too deeply")
    match node:
        case ast.Constant(value=str() | int() | float() | None):
            return node.value
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=ast.Constant(value=int() | float() as number)) if (
            not isinstance(number, bool)
        ):
            return -number if isinstance(node.op, ast.USub) else number
        case ast.List() | ast.Tuple():
            values = [_literal(item, depth + 1, names) for item in node.elts]
            return values if isinstance(node, ast.List) else tuple(values)
        case ast.Dict(keys=keys, values=values) if None not in keys:
            found = [_literal(key, depth + 1, names) for key in keys]
            if any(isinstance(key, list | dict | tuple) for key in found):
                raise NotACall("not_literal", "a dictionary key must be a plain value")
            return dict(zip(found, (_literal(value, depth + 1, names) for value in values), strict=True))
    raise NotACall("not_literal", f"{type(node).__name__} is no literal")


def call_of(node: ast.expr, signature: Signature, names: Mapping[str, Json] = NO_NAMES) -> Call:
    """A call of a plain name with literal arguments, positionals bound by the signature's order."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise NotACall("syntax", f"{type(node).__name__} is no call of a tool")
    name, arguments = node.func.id, {}
    order = list(signature.get(name, ()))
    if len(node.args) > len(order):
        raise NotACall("positional", f"{name} takes {len(order)} known positional arguments, got {len(node.args)}")
    for parameter, value in zip(order, node.args, strict=False):
        arguments[parameter] = literal(value, names)
    for keyword in node.keywords:
        if keyword.arg is None:
            raise NotACall("not_literal", "** is no literal argument")
        if keyword.arg in arguments:
            raise NotACall("duplicate_argument", f"{name} got {keyword.arg} twice")
        arguments[keyword.arg] = literal(keyword.value, names)
    return Call(name, arguments)
