"""What keeps one literal call from running for ever: arithmetic that is refused beforehand, and a time limit.

One long operation inside C (9 ** 387420489) cannot be interrupted, so sizes are judged before; loops in Python can.
"""

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from seal.core.types import Json

SECONDS = 1.0  # of computing
MAX_DIGITS = 4300  # Python's own limit on integer text: a longer result is an error of the official executor too
MAX_PRECISION = 5000  # digits that logarithm and square_root may be asked for
MAX_ARGUMENT = 10_000  # characters of a text handed to a function of numbers
_NUMERIC = frozenset(("power", "round_number", "logarithm", "square_root"))
TIMED_OUT = "timed out"


def _too_long() -> str:
    try:
        return f"{MAX_DIGITS} digits exceeded by {len(str(1 << 5 * MAX_DIGITS))}"
    except ValueError as error:  # Python's words, which are what the official executor reports
        return str(error)


TOO_LONG = _too_long()


class TimedOut(BaseException):
    """Raised inside a call that ran too long; no Exception, because environment code catches those."""


def refusal(tool: str, arguments: Mapping[str, Json]) -> str:
    """Why a call is not run; "" when it may. What the official executor would say, where it would end at all."""
    if tool not in _NUMERIC:
        return ""
    if any(isinstance(value, str) and len(value) > MAX_ARGUMENT for value in arguments.values()):
        return TIMED_OUT
    numbers = {name: value for name, value in arguments.items() if isinstance(value, int)}
    if tool == "power":
        base, exponent = abs(numbers.get("base", 0)), numbers.get("exponent", 0)
        # at least 2 ** 17200, which has 5177 digits
        return TOO_LONG if base > 1 and (base.bit_length() - 1) * exponent > 4 * MAX_DIGITS else ""
    if tool == "round_number":
        return TIMED_OUT if numbers.get("decimal_places", 0) < -10 * MAX_DIGITS else ""
    if numbers.get("precision", 0) > MAX_PRECISION:
        return TIMED_OUT
    exponents = tool == "logarithm" and any(isinstance(v, str) and "e" in v.lower() for v in arguments.values())
    return TIMED_OUT if exponents else ""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimedOut in the body after `seconds` of this process's computing, so that a busy machine changes no result.

    By an alarm, so in the main thread only; elsewhere the body is unbounded.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum, frame):
        raise TimedOut

    before = signal.signal(signal.SIGVTALRM, stop)
    left, interval = signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, left, interval)
        signal.signal(signal.SIGVTALRM, before)
