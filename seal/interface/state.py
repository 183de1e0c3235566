"""The learning interface as data: a set of items, hashed, stored as JSON."""

import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from seal.core.errors import ArtifactError, ParamError, mended_by
from seal.core.types import CUE_KINDS, Json
from seal.interface.placeholders import PLACEHOLDER, PLACEHOLDERS
from seal.store.files import read_json, shape_error

VERSION = 2  # the newest of interface.json; see InterfaceState
Place = Literal["docs", "feedback", "hint"]
Status = Literal["active", "retired", "rolled_back"]


def target_of(tool: str, param: str = "") -> str:
    """Where a cue of a tool or of a parameter is read."""
    return f"{tool}.{param}" if param else tool


@dataclass(frozen=True, slots=True)
class Item:
    """One cue. `kind` names its operator, `target` is "tool", "tool.param", an error kind or a category.

    `where`: "docs" (tool or parameter note), "feedback" (after an error), "hint" (guidance in the system part).
    `text` is what the policy reads. `label` is the failure it answers; `support` counts the evidence rows behind it.
    """

    kind: str
    target: str
    where: Place
    text: str
    label: str
    born_in: str
    support: int = 0
    status: Status = "active"
    evidence: Mapping[str, Json] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """8 hex digits of kind, target and text: the same cue has the same id in every round."""
        return hashlib.blake2b("\x1f".join((self.kind, self.target, self.text)).encode(), digest_size=4).hexdigest()


@dataclass(frozen=True, slots=True)
class InterfaceState:
    """An immutable set of items in a fixed order. The empty state is the bare interface.

    `version` says how it is read. 1: a text may name a tool that the task still withholds; 2: none does.
    """

    items: tuple[Item, ...] = ()
    version: int = 1

    @property
    def active(self) -> tuple[Item, ...]:
        return tuple(item for item in self.items if item.status == "active")

    @property
    def hash(self) -> str:
        """16 hex digits over the active items (and a version above 1); "bare" where there is none."""
        if not self.active:
            return "bare"
        parts = sorted(item.id for item in self.active) + [f"v{self.version}"] * (self.version > 1)
        return hashlib.blake2b("".join(parts).encode(), digest_size=8).hexdigest()

    def without(self, item_id: str) -> "InterfaceState":
        return replace(self, items=tuple(item for item in self.items if item.id != item_id))

    def without_naming(self, tools: Collection[str]) -> "InterfaceState":
        """The state without the items whose text names one of these tools; itself where none does."""
        if not tools:
            return self
        named = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, sorted(tools)))})(?!\w)")
        items = tuple(item for item in self.items if not named.search(item.text))
        return self if len(items) == len(self.items) else replace(self, items=items)

    def to_json(self) -> str:
        rows = [{"id": item.id, **asdict(item)} for item in self.items]
        return json.dumps({"version": self.version, "items": rows}, indent=1, sort_keys=True) + "\n"


_TEXTS = dict.fromkeys(("kind", "target", "where", "text", "label", "born_in"), str)
_KEYS = {**_TEXTS, "id": str, "support": int, "status": str, "evidence": dict}
_CHOICES = {"kind": CUE_KINDS, "where": get_args(Place), "status": get_args(Status)}
_FILE = {"version": int, "items": [_TEXTS]}
_LINE_BREAKERS = frozenset({"Cc", "Zl", "Zp", "Cs"})  # control characters, other line ends, halves of characters
_NO_JSON = re.compile(r'\{(?!\s*\\?["}])')  # a brace that opens no JSON object
_BRACE = re.compile(r"[{}]")
_HOME = "a round's is data/rounds/<id>/interface.json, which `dvc checkout` restores"
_REMEDY = f"mend it, or copy it anew from where it was made: {_HOME}"


def is_one_line(text: str) -> bool:
    """Whether it can be read in the line of another text: no line ends, no control characters."""
    return not any(unicodedata.category(character) in _LINE_BREAKERS for character in text)


def load_interface(path: str | Path) -> InterfaceState:
    """Read `interface.json`; `id`, `support`, `status` and `evidence` may be left out of an item.

    Raises ArtifactError when the file is missing or is not one, ParamError for what is no path.
    """
    if not isinstance(path, str | os.PathLike):
        raise ParamError("interface", f"{type(path).__name__} is no path", "give the path of an interface.json")
    path = Path(path)
    if not path.exists():
        raise ArtifactError("interface", f"{path} is not there", f"name an interface.json: {_HOME}")
    with mended_by(_REMEDY):
        found = read_json(path, _FILE)
    if unknown := sorted(found.keys() - _FILE.keys()):
        fault = f"unknown key {unknown[0]!r}; known: {', '.join(_FILE)}"
        raise ArtifactError("interface", f"{path}: {fault}", _REMEDY)
    if isinstance(found["version"], bool) or found["version"] not in range(1, VERSION + 1):
        remedy = f"this SEAL reads versions 1 to {VERSION}: install the one that wrote it"
        raise ArtifactError("interface", f"{path}: version {found['version']}", remedy)
    ids: set[str] = set()
    items = []
    for i, row in enumerate(found["items"]):
        item = Item(**{key: row[key] for key in row.keys() & _KEYS.keys() - {"id"}})
        if fault := _fault(row, item, ids):
            raise ArtifactError("interface", f"{path}: items[{i}]: {fault}", _REMEDY)
        ids.add(item.id)
        items.append(item)
    return InterfaceState(tuple(items), found["version"])


def _fault(row: Mapping[str, Json], item: Item, ids: Collection[str]) -> str:
    """What is wrong with one stored item; "" when nothing is."""
    if unknown := sorted(row.keys() - _KEYS.keys()):
        return f"unknown key {unknown[0]!r}; known: {', '.join(_KEYS)}"
    if fault := shape_error(row, {key: kind for key, kind in _KEYS.items() if key in row}):
        return fault
    for key, choices in _CHOICES.items():
        if key in row and row[key] not in choices:
            return f"{key} {row[key]!r}; use one of {', '.join(choices)}"
    if not item.target.strip() or not item.text.strip():
        return "target and text must not be empty"
    for key, value in (("target", item.target), ("text", item.text)):
        if not is_one_line(value):
            return f"{key} {value!r}; it must be one line without control characters"
    if fault := _template_fault(item):
        return f"text {item.text!r}: {fault}"
    if isinstance(item.support, bool) or item.support < 0:
        return f"support {item.support!r}; it counts failing turns"
    if row.get("id", item.id) != item.id:
        return f"id {row['id']!r} is not that of its kind, target and text, {item.id!r}: leave it out"
    return f"id {item.id!r} is there twice" if item.id in ids else ""


def _template_fault(item: Item) -> str:
    """What is wrong with the placeholders of a template; "" when nothing is, and for texts that are none.

    The example of a call may hold JSON objects, no other template a brace that is no placeholder.
    """
    if item.kind not in ("recover_any", "call_format"):
        return ""
    rest = PLACEHOLDER.sub(lambda found: "" if found[1] in PLACEHOLDERS else found[0], item.text)
    known = f"the slots are {', '.join(f'{{{name}}}' for name in PLACEHOLDERS)}"
    if unknown := PLACEHOLDER.search(rest):
        return f"unknown slot {unknown[0]}; {known}"
    broken = rest.count("{") != rest.count("}") or (_NO_JSON if item.kind == "call_format" else _BRACE).search(rest)
    return f"a brace that is no slot; {known}" if broken else ""
