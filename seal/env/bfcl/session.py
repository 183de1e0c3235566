"""One isolated BFCL world: literal calls in, result strings out as the official executor words them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from decimal import localcontext
from types import MappingProxyType
from typing import Any

from seal.core.types import Call, Json, Result
from seal.env.bfcl import bounds
from seal.env.bfcl.plain import copied, public_state
from seal.env.bfcl.world import instances, signatures
from seal.tools.shapes import error_kind

_FAILED = "Error during execution: "
_FORBIDDEN = frozenset(("kill", "exit", "quit", "remove", "unlink", "popen", "Popen", "run"))


class BfclSession:
    """The classes of one task with their scenario. `config` is BFCL's initial_config: `{class: scenario}`."""

    def __init__(self, classes: Sequence[str], config: Mapping[str, Json], long_context: bool = False):
        self._parts = instances(classes, config, long_context)
        self._owner = {tool: part for name, part in self._parts.items() for tool in signatures(name)}

    def call(self, call: Call) -> Result:
        """Run one call; every fault is a result, also one that would never end."""
        if call.name in _FORBIDDEN:
            return _result(f"{_FAILED}Function call {call.name} is not allowed.", "unknown_tool")
        owner = self._owner.get(call.name)
        if owner is None:
            return _result(f"{_FAILED}name '{call.name}' is not defined", "unknown_tool")
        reason = bounds.refusal(call.name, call.arguments)
        if reason:
            return _result(_FAILED + reason, "timeout" if reason == bounds.TIMED_OUT else "other")
        try:
            arguments = {name: copied(value) for name, value in call.arguments.items()}
            with _GUARDS.get(type(owner).__name__, nullcontext)():
                return _result(_worded(getattr(owner, call.name)(**arguments)))
        except bounds.TimedOut:
            return _result(_FAILED + bounds.TIMED_OUT, "timeout")
        except Exception as error:  # whatever the tool raises is what the policy reads, as officially
            raw = f"{_FAILED}{error}"
            return _result(raw, error_kind(raw) or "other")

    def state(self) -> dict[str, Json]:
        """`{class: {public attribute: plain value}}`."""
        return {name: public_state(part) for name, part in self._parts.items()}


def _result(raw: str, kind: str | None = None) -> Result:
    return Result(raw, raw, error_kind(raw) if kind is None else kind)


def _worded(value: Any) -> str:
    if type(value) is dict:
        try:
            return json.dumps(value)
        except Exception:  # the official executor falls back on anything
            return str(value)
    return value if type(value) is str else str(value)


@contextmanager
def _arithmetic() -> Iterator[None]:
    """Two MathAPI tools set the precision of mpmath and decimal for the whole process; here it ends with the call."""
    import mpmath

    before = mpmath.mp.prec
    try:
        with bounds.time_limit(bounds.SECONDS), localcontext():
            yield
    finally:
        mpmath.mp.prec = before


@contextmanager
def _walk() -> Iterator[None]:
    """A directory moved into itself makes loops without an end."""
    with bounds.time_limit(bounds.SECONDS):
        yield


# The loops of the other classes are bounded by their data.
_GUARDS = MappingProxyType({"MathAPI": _arithmetic, "GorillaFileSystem": _walk})
