"""One isolated BFCL world: literal calls in, result strings out as the official executor words them."""

import json
import marshal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import localcontext
from functools import lru_cache
from threading import Lock
from types import MappingProxyType
from typing import Any

from seal.core.types import Call, Json, Result
from seal.env.base import Difference, Session
from seal.env.bfcl import bounds
from seal.env.bfcl.dispatch import FAILED, no_tool, worded
from seal.env.bfcl.instances import instances, own_method, reaching, signatures
from seal.env.bfcl.values import SCALARS, copied, differences, public_state
from seal.env.limit import TimedOut, time_limit
from seal.tools.error_kinds import error_kind

_MPMATH = Lock()
RAISED = "other"  # the kind of what a tool raised, where its text says no more
_GUARDED = bounds.NUMERIC | bounds.WALKS
CACHED_TEXTS = 512  # of up to 60 kB each


class BfclSession(Session):
    """The classes of one task with their scenario. `config` is BFCL's initial_config: `{class: scenario}`."""

    def __init__(self, classes: Sequence[str], config: Mapping[str, Json], long_context: bool = False):
        self._long_context = bool(long_context)
        self._parts = instances(classes, config, self._long_context)
        self._owners = owners(tuple(classes))
        self._spaces: dict[str, dict[str, Any]] = {}  # per class, what its own methods reach beside the instance
        self._own: dict[str, Callable[..., Any]] = {}
        self._compared: dict[str, tuple[Mapping[str, Json], Difference | None]] = {}
        self._calls = self._returned = 0

    def call(self, call: Call) -> Result:
        """Run one call; every fault is a result, also one that would never end."""
        raw, kind = self._counted(call)
        if kind is None or kind is RAISED:
            kind = error_kind(raw) or (kind or "")
        return Result(raw, raw, kind)

    def raw_results(self, calls: Sequence[Call]) -> list[str]:
        """The raw result texts of calls, without a look at what they say."""
        return [self._counted(call)[0] for call in calls]

    def state(self) -> dict[str, Json]:
        """`{class: {public attribute: plain value}}`, a copy."""
        return {name: public_state(part) for name, part in self._parts.items()}

    def state_since(self, before: Mapping[str, Mapping[str, Json]]) -> dict[str, Json]:
        """The state, where a class is as before the very same object."""
        return {name: self._state_since(name, held) for name, held in before.items()}

    def difference(self, expected: Mapping[str, Mapping[str, Json]]) -> Difference | None:
        for name in sorted(expected):
            if found := self._first_difference(name, expected[name]):
                attribute, ours, theirs = found
                return f"{name}.{attribute}", ours, theirs
        return None

    def _state_since(self, name: str, before: Mapping[str, Json]) -> Mapping[str, Json]:
        if self._first_difference(name, before) is None:
            return before
        return {**before, **{key: ours for key, ours, _ in differences(self._parts[name], before)}}

    def _first_difference(self, name: str, expected: Mapping[str, Json]) -> Difference | None:
        """Looked for again only after a call, or in something else."""
        if name in self._compared and self._compared[name][0] is expected:
            return self._compared[name][1]
        found = next(differences(self._parts[name], expected), None)
        self._compared[name] = expected, found
        return found

    def _counted(self, call: Call) -> tuple[str, str | None]:
        """The raw result and its error kind, None where that must be read from the text."""
        raw, kind = self._run(call.name, call.arguments)
        self._calls += 1
        self._returned += len(raw)
        return raw, kind

    def _run(self, tool: str, arguments: Mapping[str, Json]) -> tuple[str, str | None]:
        if unknown := no_tool(tool, self._owners):
            return unknown, "unknown_tool"
        if reason := self._exhausted() or bounds.refusal(tool, arguments):
            return FAILED + reason, "timeout" if reason == bounds.TIMED_OUT else RAISED
        return self._executed(self._owners[tool], tool, arguments)

    def _executed(self, name: str, tool: str, arguments: Mapping[str, Json]) -> tuple[str, str | None]:
        try:
            return self._called(name, tool, arguments, _read)
        except TimedOut:
            return FAILED + bounds.TIMED_OUT, "timeout"
        except Exception as error:  # whatever the tool raises is what the policy reads, as officially
            return f"{FAILED}{error}", RAISED

    def _called(self, name: str, tool: str, arguments: Mapping[str, Json], read: Callable[[Any], Any]) -> Any:
        """What `read` makes of what a tool of a class returns; or whatever the tool raises, and TimedOut."""
        part = self._parts[name]
        if reason := bounds.endless(tool, part):
            raise RecursionError(reason)
        self._compared.pop(name, None)
        method = self._own.get(tool) or self._method(part, name, tool)
        given = {key: value if type(value) in SCALARS else copied(value) for key, value in arguments.items()}
        if tool not in _GUARDED:
            return read(method(**given))
        with _guard(tool):  # a number's text hangs on the precision too
            return read(method(**given))

    def _method(self, part: Any, name: str, tool: str) -> Callable[..., Any]:
        if tool not in reaching(name, self._long_context):
            return getattr(part, tool)
        space = self._spaces.setdefault(name, {})
        method = self._own[tool] = own_method(part, name, self._long_context, tool, space)
        return method

    def _exhausted(self) -> str:
        if self._calls >= bounds.MAX_CALLS:
            return bounds.TOO_MANY_CALLS
        return bounds.TOO_LONG_RESULTS if self._returned > bounds.MAX_RESULTS else ""


@lru_cache(maxsize=256)
def owners(classes: tuple[str, ...]) -> Mapping[str, str]:
    """`{tool: class}`."""
    return MappingProxyType({tool: name for name in classes for tool in signatures(name)})


def _read(value: Any) -> tuple[str, str | None]:
    """A returned value as text, and its error kind, None where that must be read from the text."""
    return _cached_text(value), "" if _surely_no_error(value) else None


def _cached_text(value: Any) -> str:
    """`worded`, kept for a while: the rollouts of a task are told the same, and some records are long."""
    if type(value) is not dict:
        return worded(value)
    try:
        return _json(marshal.dumps(value, 2))
    except Exception:  # more than plain values: never mind
        return worded(value)


@lru_cache(maxsize=CACHED_TEXTS)
def _json(value: bytes) -> str:
    return json.dumps(marshal.loads(value))


def _surely_no_error(value: Any) -> bool:
    """Whether a value that a tool returned tells of no error, where that needs no look into its text."""
    return type(value) is dict and not (value.get("error") or value.get("errors") or value.get("exception"))


def _guard(tool: str) -> Any:
    """The loops of other tools are bounded by their data, and these by the number of calls."""
    return _arithmetic() if tool in bounds.NUMERIC else time_limit(bounds.SECONDS)


@contextmanager
def _arithmetic() -> Iterator[None]:
    """Two MathAPI tools set the precision of mpmath (one for all threads) and decimal; here it ends with the call."""
    import mpmath

    with _MPMATH, mpmath.workprec(mpmath.mp.prec), time_limit(bounds.SECONDS), localcontext():
        yield
