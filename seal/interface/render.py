"""Interface items into tool docs (notes) and into the system part (hints). Pure: the bare docs are never changed."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from seal.core.errors import ParamError
from seal.core.types import Mode, Note, ToolDoc
from seal.interface.state import InterfaceState, Item, target_of

MODES: tuple[Mode, ...] = ("off", "full", "feedback_only", "docs_only")
ANY_CATEGORY = "*"  # target of a hint that every category reads


def check_mode(mode: str) -> Mode:
    """The mode itself. Raises ParamError when there is no such mode."""
    if mode not in MODES:
        raise ParamError("interface mode", mode, f"use one of {', '.join(MODES)}")
    return mode


def shows_docs(mode: Mode) -> bool:
    """Whether notes and hints stand in the prompt."""
    return mode in ("full", "docs_only")


def shows_feedback(mode: Mode) -> bool:
    """Whether recovery texts follow an error."""
    return mode in ("full", "feedback_only")


def by_target(state: InterfaceState, where: str) -> dict[str, tuple[Item, ...]]:
    """Active items of one place by their target, in an order that the set of items alone decides."""
    index: dict[str, list[Item]] = {}
    for item in state.active:
        if item.where == where:
            index.setdefault(item.target, []).append(item)
    return {t: tuple(sorted(items, key=lambda item: (item.kind, item.text))) for t, items in sorted(index.items())}


def render(
    docs: Sequence[ToolDoc], state: InterfaceState, mode: Mode = "full", in_sight: Sequence[ToolDoc] = ()
) -> tuple[ToolDoc, ...]:
    """`docs` with the notes of `state`; the very same objects where there is nothing to add (always in mode "off").

    `in_sight`: docs of the tools that stand beside them, which a note may send the policy to.
    """
    if not shows_docs(mode):
        return tuple(docs)
    index = by_target(state, "docs")
    names = {doc.name for doc in (*docs, *in_sight)}
    return tuple(_annotated(doc, index, names) for doc in docs) if index else tuple(docs)


def _annotated(doc: ToolDoc, index: Mapping[str, tuple[Item, ...]], names: Set[str]) -> ToolDoc:
    places = ["", *(param.name for param in doc.params)]
    shown = {(note.param, note.text) for note in doc.notes}
    notes = tuple(
        Note(param, item.text, item.id)
        for param in places
        for item in index.get(target_of(doc.name, param), ())
        if (param, item.text) not in shown
        and (item.kind != "sibling" or item.text.partition(" ")[0] in names)  # a tool that is not there is no choice
    )
    return replace(doc, notes=doc.notes + notes) if notes else doc


def hints(category: str, state: InterfaceState, mode: Mode = "full") -> tuple[str, ...]:
    """Guidance lines for tasks of `category`; () in modes that leave the prompt alone."""
    if not shows_docs(mode):
        return ()
    index = by_target(state, "hint")
    return tuple(item.text for target in dict.fromkeys((ANY_CATEGORY, category)) for item in index.get(target, ()))
