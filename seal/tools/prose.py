"""Allowed values that docs tell only in prose, as BFCL does: "[Enum]: ["START", "STOP"]", "Options are: a, b, c."."""

import json
import re

from seal.core.types import Json, Param

_MARK = re.compile(
    r"\[enum\]\s*:\s*|\b(?:options are|here are the options|allowed values|one of)\s*:\s*", re.IGNORECASE
)
_VALUE = re.compile(r"[\w./+-]+(?: [\w./+-]+){0,2}")


def enum_in_text(description: str) -> tuple[Json, ...]:
    """Allowed values named by a description: a JSON list, or words between commas, after a mark; () without a mark."""
    mark = _MARK.search(description)
    if mark is None:
        return ()
    rest = description[mark.end() :].strip()
    if rest.startswith("["):
        try:
            values, _ = json.JSONDecoder().raw_decode(rest)
        except ValueError:
            return ()
        return tuple(values)
    head = re.split(r"\.(?:\s|$)|[;\n]", rest, maxsplit=1)[0]
    values = [re.sub(r"^(?:and|or)\s+", "", part.strip()).strip("'\"` ") for part in head.split(",")]
    return tuple(values) if len(values) > 1 and all(_VALUE.fullmatch(value) for value in values) else ()


def enum_of(param: Param) -> tuple[Json, ...]:
    """Allowed values of a parameter: declared, else told in its description."""
    return param.enum or enum_in_text(param.description)
