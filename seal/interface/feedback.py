"""What the policy reads after an error: the raw text, and behind " | " what the interface knows about it.

Two sources, both items of the state: recovery items (place "feedback") of the failing tool or parameter, and
templates of the error's kind. In mode "feedback_only", made for tools whose docs cannot change, notes of the failing
target are told here too, since they stand nowhere else.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from seal.core.types import REFUSALS, Call, CallError, Mode, Result, ToolDoc
from seal.interface.placeholders import Failure, fill
from seal.interface.render import by_target, shows_feedback
from seal.interface.state import InterfaceState, Item, target_of

SEPARATOR = " | "
CALL_ERRORS = ("missing_argument", "unexpected_argument", "wrong_type")  # an example of the call answers them
SYNTAX = "syntax"  # target of the items that answer an output that is no call at all
LOOP = "loop"  # target of the items that answer a call repeated after it failed
_REFUSAL_NOTES = frozenset({"needs", "order", "role"})


class Repeats:
    """How often each call failed in one conversation."""

    def __init__(self) -> None:
        self._failed: Counter[str] = Counter()

    def failed(self, call: Call) -> int:
        """Count one more failure of this very call; how often it had failed before."""
        key = f"{call.name}{sorted(call.arguments.items(), key=lambda pair: str(pair[0]))!r}"
        self._failed[key] += 1
        return self._failed[key] - 1


def raw_error(error: CallError) -> str:
    """What the bare environment says to an output that does not parse. Terse: kind and message are for people."""
    return "error unknown tool" if error.kind == "unknown_tool" else "error parse"


def feedback(
    call: Call, result: Result, docs: Sequence[ToolDoc], state: InterfaceState, mode: Mode = "full", repeats: int = 0
) -> str:
    """The shown text of one result; `result.raw` itself on success and in modes without feedback.

    `docs`: the tools in sight (bare). `repeats`: how often this very call failed before in the episode.
    """
    if not result.error_kind or not shows_feedback(mode):
        return result.raw
    failure = Failure(call, result.error_kind, result.raw, tuple(docs))
    texts = [*_of_target(failure, state, mode)]
    if not (texts and failure.kind in REFUSALS):  # what to do first is said
        stated = {word for text in texts for word in text.split()}
        texts += [text for text in _of_kind(failure, (failure.kind,), state) if not stated.issuperset(text.split()[1:])]
    if repeats > 0:
        texts += _of_kind(failure, (LOOP,), state)
    return SEPARATOR.join([result.raw, *dict.fromkeys(texts)])


def parse_feedback(error: CallError, docs: Sequence[ToolDoc], state: InterfaceState, mode: Mode = "full") -> str:
    """The shown text of an output that does not parse."""
    raw = raw_error(error)
    if not shows_feedback(mode):
        return raw
    failure = Failure(Call("", {}), error.kind, error.message, tuple(docs))
    kinds = (error.kind,) if error.kind == "unknown_tool" else (SYNTAX, error.kind)
    return SEPARATOR.join([raw, *dict.fromkeys(_of_kind(failure, dict.fromkeys(kinds), state))])


def _of_target(failure: Failure, state: InterfaceState, mode: Mode) -> Iterator[str]:
    """Texts of items aimed at the failing parameters, or at the tool when it refused."""
    recovery, notes = by_target(state, "feedback"), by_target(state, "docs") if mode == "feedback_only" else {}
    if failure.kind in REFUSALS:
        yield from (item.text for item in recovery.get(failure.call.name, ()))
        yield from (item.text for item in notes.get(failure.call.name, ()) if item.kind in _REFUSAL_NOTES)
        return
    if failure.kind in CALL_ERRORS:
        yield from (item.text for item in notes.get(failure.call.name, ()) if item.kind == "example")
    for param in (p.name for p in failure.blamed):
        target = target_of(failure.call.name, param)
        yield from (item.text for item in recovery.get(target, ()))
        yield from (f"{param}= {item.text}" for item in notes.get(target, ()))
        if failure.kind == "not_found":
            yield from _sources(param, {doc.name: notes.get(doc.name, ()) for doc in failure.docs})


def _sources(param: str, notes: Mapping[str, Sequence[Item]]) -> Iterator[str]:
    """Notes of the tools in sight that return what was not found: `find_order returns shipment=`."""
    for tool, items in sorted(notes.items()):
        yield from (f"{tool} {i.text}" for i in items if i.kind == "returns" and f"{param}=" in i.text.split())


def _of_kind(failure: Failure, kinds: Sequence[str], state: InterfaceState) -> list[str]:
    index = by_target(state, "feedback")
    return [text for kind in kinds for item in index.get(kind, ()) if (text := fill(item.text, failure))]
