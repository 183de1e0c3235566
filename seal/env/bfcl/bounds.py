"""What keeps a world from running or growing for ever: sizes that are judged before a call runs.

One long operation inside C (9 ** 387420489) cannot be interrupted, so whatever has no bound in its data is judged
before, by sizes alone: the same call ends the same way on any machine. The time limit is the second line.
"""

from collections.abc import Mapping
from typing import Any

from seal.core.types import Json
from seal.env.bfcl.values import MAX_ENTRIES, entries

SECONDS = 1.0  # of computing
MAX_DIGITS = 4300  # Python's own limit on integer text: a longer result is an error of the official executor too
MAX_PRECISION = 5000  # digits that logarithm and square_root may be asked for
MAX_ARGUMENT = 1000  # characters of a text handed to a function of numbers
MAX_EXPONENT = 5  # characters after the e of such a text
MAX_NESTING = 40  # of lists and dictionaries in an argument, as in the texts of a policy
MAX_CALLS = 10_000  # of one world
MAX_RESULTS = 20_000_000  # characters that one world returns
TIMED_OUT = "timed out"
TOO_DEEP = "maximum recursion depth exceeded"
TOO_MANY_CALLS = f"more than {MAX_CALLS} calls"
TOO_LONG_RESULTS = f"results longer than {MAX_RESULTS} characters"
NUMERIC = frozenset(("power", "round_number", "logarithm", "square_root"))
_CONTAINERS = frozenset((dict, list, tuple))
WALKS = frozenset(("find", "du"))  # the tools that go through a whole tree


def _too_long() -> str:
    try:
        return f"{MAX_DIGITS} digits exceeded by {len(str(1 << 5 * MAX_DIGITS))}"
    except ValueError as error:  # Python's words, which are what the official executor reports
        return str(error)


TOO_LONG = _too_long()


def refusal(tool: str, arguments: Mapping[str, Json]) -> str:
    """Why a call is not run; "" when it may. What the official executor would say, where it would end at all."""
    for value in arguments.values():
        if type(value) in _CONTAINERS and _nested(value):
            return TOO_DEEP
    if tool not in NUMERIC:
        return ""
    if any(isinstance(value, str) and len(value) > MAX_ARGUMENT for value in arguments.values()):
        return TIMED_OUT
    if tool == "power":
        base, exponent = (_integer(arguments.get(name)) for name in ("base", "exponent"))
        # at least 2 ** 17200, which has 5177 digits
        return TOO_LONG if abs(base) > 1 and (abs(base).bit_length() - 1) * exponent > 4 * MAX_DIGITS else ""
    if tool == "round_number":
        return TIMED_OUT if _integer(arguments.get("decimal_places")) < -10 * MAX_DIGITS else ""
    if _digits(arguments.get("precision")) > MAX_PRECISION:
        return TIMED_OUT
    texts = [value.lower() for value in arguments.values() if isinstance(value, str)]
    if any(len(part) > MAX_EXPONENT for text in texts for part in text.split("e")[1:]):
        return TIMED_OUT
    return ""


def endless(tool: str, world: Any) -> str:
    """Why a tool that goes through a tree is not run: too many entries, too deep, or a directory in itself."""
    if tool not in WALKS:
        return ""
    # the current directory may be one that was taken out of the tree
    endless = any(entries(directory) == MAX_ENTRIES for directory in (world.root, world._current_dir))
    return TOO_DEEP if endless else ""


def _integer(value: Json) -> int:
    return value if isinstance(value, int) else 0


def _digits(value: Json) -> int:
    """A precision as mpmath takes it, which a text or a float may give too."""
    try:
        return int(value) if isinstance(value, int | float | str) else 0
    except (ValueError, OverflowError):  # no number, which the tool itself will tell
        return 0


def _nested(value: Json, depth: int = 1) -> bool:
    if depth > MAX_NESTING:
        return True
    items = value.values() if type(value) is dict else value
    return any(type(item) in _CONTAINERS and _nested(item, depth + 1) for item in items)
