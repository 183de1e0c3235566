"""Objects of a BFCL world -> plain JSON-like values, such that equal values mean equal by the official comparison."""

import marshal
from collections.abc import Iterator, Mapping
from typing import Any

from seal.core.types import Json

MAX_ENTRIES = 10_000  # files and directories looked at; a scenario has at most some hundreds
MAX_DEPTH = 100  # of directories; a scenario has at most 4
CUT = "..."
SCALARS = frozenset((str, int, float, bool, type(None)))


def copied(value: Json) -> Json:
    """A deep copy of a JSON-like value; much faster than copy.deepcopy. Raises ValueError for anything else."""
    return value if type(value) in SCALARS else marshal.loads(marshal.dumps(value))


def public_state(instance: Any) -> dict[str, Json]:
    """Every public attribute; the official checker compares no others. It is a copy that later calls leave alone."""
    return {name: to_json(value) for name, value in vars(instance).items() if not name.startswith("_")}


def differences(instance: Any, expected: Mapping[str, Json]) -> Iterator[tuple[str, Json, Json]]:
    """Those attributes of `public_state(instance)` that differ from `expected`, by name: the name, ours, theirs."""
    held = vars(instance)
    for name in sorted(expected):
        ours, theirs = held.get(name, CUT), expected[name]
        if ours == theirs or ("contents" in _entry(ours) and _same_entry(vars(ours), theirs)):
            continue
        public = to_json(ours)
        if public != theirs:
            yield name, public, theirs


def _entry(value: Any) -> Mapping[str, Any]:
    """The attributes of a file or directory; none of a plain value."""
    return getattr(value, "__dict__", {})


def _same_entry(held: Mapping[str, Any], theirs: Json) -> bool:
    """Whether a file or directory, given as its attributes, is as `theirs` says; looks at no more than that has."""
    if type(theirs) is not dict or held["name"] != theirs.get("name"):
        return False
    if "contents" not in held:
        return "content" in theirs and held["content"] == theirs["content"]
    contents, found = held["contents"], theirs.get("contents")
    if type(found) is not dict or len(contents) != len(found):
        return False
    return all(key in found and _same_entry(vars(item), found[key]) for key, item in contents.items())


def to_json(value: Any) -> Json:
    """A file is its name and content, a directory its name and contents (as their __eq__ has it), a set a sorted list.

    What makes a tree no scenario has (a directory in itself, or very many or very deep ones) is cut and marked.
    """
    return _to_json(value, (), iter(range(MAX_ENTRIES)))


def entries(tree: Any) -> int:
    """Files and directories under a directory, each counted as often as it is reached; MAX_ENTRIES at most.

    A tree deeper than MAX_DEPTH counts as MAX_ENTRIES: a directory may be in itself.
    """
    count, level = 0, [tree]
    for _ in range(MAX_DEPTH):
        below = []
        for directory in level:
            count += len(directory.contents)
            if count >= MAX_ENTRIES:
                return MAX_ENTRIES
            below += [item for item in directory.contents.values() if "contents" in vars(item)]
        if not below:
            return count
        level = below
    return MAX_ENTRIES


def _to_json(value: Any, above: tuple[int, ...], left: Iterator[int]) -> Json:
    kind = type(value)
    if kind in SCALARS:
        return value
    if kind is dict:
        return {key: item if type(item) in SCALARS else _to_json(item, above, left) for key, item in value.items()}
    if kind is list or kind is tuple:
        return kind([item if type(item) in SCALARS else _to_json(item, above, left) for item in value])
    if kind is set:
        return sorted(value, key=repr)
    if next(left, None) is None or len(above) == MAX_DEPTH:
        return CUT
    if "content" in (held := _entry(value)):
        content = held["content"]
        return {"name": value.name, "content": content if type(content) in SCALARS else _to_json(content, above, left)}
    if "contents" in held:
        if id(value) in above:
            return {"cycle": len(above)}
        here = (*above, id(value))
        found = {key: _to_json(item, here, left) for key, item in value.contents.items()}
        return {"name": value.name, "contents": found}
    return repr(value)
