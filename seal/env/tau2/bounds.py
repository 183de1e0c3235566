"""What keeps `calculate` from running for ever: the package evaluates any text of digits and operators."""

import ast
import math
import operator
from collections.abc import Callable, Mapping

from seal.core.types import Json

MAX_TEXT = 2000  # characters
TIMED_OUT = "timed out"
_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], complex]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}


def refusal(tool: str, arguments: Mapping[str, Json]) -> str:
    """Why a call is not run; "" when it may. A number that no float can hold would be an error of the tool as well."""
    expression = arguments.get("expression")
    if tool != "calculate" or not isinstance(expression, str):
        return ""
    if len(expression) > MAX_TEXT:
        return TIMED_OUT
    try:
        _value(ast.parse(expression.strip(), mode="eval").body)
    except OverflowError:
        return TIMED_OUT
    except (SyntaxError, ValueError, TypeError, ZeroDivisionError, RecursionError, MemoryError):
        return ""  # the tool's own words
    return ""


def _value(node: ast.expr) -> complex:
    """What an arithmetic expression comes to in floats, quick where integers are not. Raises OverflowError."""
    match node:
        case ast.Constant(value=int() | float() as value):
            value = float(value)
        case ast.UnaryOp(op=op, operand=operand):
            value = -_value(operand) if isinstance(op, ast.USub) else _value(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            value = _OPERATORS[type(op)](_value(left), _value(right))
        case _:
            raise ValueError("no arithmetic")
    if not math.isfinite(abs(value)):
        raise OverflowError
    return value
