"""The learning interface as data: a set of items, hashed, stored as JSON."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from seal.core.errors import ArtifactError
from seal.core.types import Json
from seal.store.files import read_json


@dataclass(frozen=True, slots=True)
class Item:
    """One cue. `kind` names its operator, `target` is "tool", "tool.param", an error kind or a category.

    `where`: "docs" (tool or parameter note), "feedback" (after an error), "hint" (guidance in the system part).
    `text` is what the policy reads. `label` is the failure it answers; `support` counts the evidence rows behind it.
    """

    kind: str
    target: str
    where: str
    text: str
    label: str
    born_in: str
    support: int = 0
    status: str = "active"  # active | retired | rolled_back
    evidence: Mapping[str, Json] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """8 hex digits of kind, target and text: the same cue has the same id in every round."""
        return hashlib.blake2b("\x1f".join((self.kind, self.target, self.text)).encode(), digest_size=4).hexdigest()


@dataclass(frozen=True, slots=True)
class InterfaceState:
    """An immutable set of items in a fixed order. The empty state is the bare interface."""

    items: tuple[Item, ...] = ()

    @property
    def active(self) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.status == "active")

    @property
    def hash(self) -> str:
        """16 hex digits over the active items; "bare" where there is none."""
        if not self.active:
            return "bare"
        ids = sorted(item.id for item in self.active)
        return hashlib.blake2b("".join(ids).encode(), digest_size=8).hexdigest()

    def without(self, item_id: str) -> "InterfaceState":
        return InterfaceState(tuple(item for item in self.items if item.id != item_id))

    def to_json(self) -> str:
        rows = [{"id": item.id, **asdict(item)} for item in self.items]
        return json.dumps({"version": 1, "items": rows}, indent=1, sort_keys=True) + "\n"


_SHAPE = {"items": [dict.fromkeys(("kind", "target", "where", "text", "label", "born_in"), str)]}


def load_interface(path: Path) -> InterfaceState:
    """Read `interface.json`. Raises ArtifactError when it is missing or is not one."""
    rows = read_json(path, _SHAPE)["items"]
    try:
        return InterfaceState(tuple(Item(**{k: v for k, v in row.items() if k != "id"}) for row in rows))
    except TypeError as error:
        raise ArtifactError("interface snapshot", f"{path}: {error}", "restore it with `dvc checkout`") from None
