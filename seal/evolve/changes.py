"""The change log: one row for every decision about an item of the interface, and what an item was before it changed."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from seal.core.types import Json
from seal.interface.state import InterfaceState, Item
from seal.interface.wording import count_words

REMOVED_FOR_GOOD = ("uplift", "gate")  # why an item was taken out (`out` of its evidence) that does not come back
Row = dict[str, Json]
Key = tuple[str, str, str]  # place, target, text


@dataclass(frozen=True, slots=True)
class ChangeLog:
    """The decisions of one round. `count`: tokens of a text for the policy that reads it."""

    round_id: str
    count: Callable[[str], int] = count_words
    rows: list[Row] = field(default_factory=list)

    def add(self, action: str, item: Item, reason: str, support: int | None = None, rate: float = 0.0) -> None:
        """One row. Actions: add, keep, retire, rollback (by the gate), refuse (by the guard)."""
        cue = {"item": item.id, "kind": item.kind, "target": item.target, "place": item.where, "text": item.text}
        support = item.support if support is None else support
        counts = {"tokens": self.count(item.text), "label": item.label, "support": support}
        why = {"rate": round(float(rate), 6), "reason": reason, "evidence": list(item.evidence.get("rollouts", ()))}
        self.rows.append({"round": self.round_id, "action": action, **cue, **counts, **why})


def original(item: Item) -> Item:
    """The item as its operator wrote it, before a model reworded it."""
    return replace(item, text=item.evidence.get("original", item.text))


def key_of(item: Item) -> Key:
    """What says the same at the same place is the same, whatever kind it is."""
    return item.where, item.target, item.text


def removed_for_good(state: InterfaceState) -> set[Key]:
    """Keys of the items that may not come back."""
    return {key_of(original(item)) for item in state.items if item.evidence.get("out") in REMOVED_FOR_GOOD}
