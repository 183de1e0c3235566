"""One label of a turn, before one of them is made primary."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from seal.core.labels import Label
from seal.core.types import Json


@dataclass(frozen=True, slots=True)
class Finding:
    """A label of a turn, before one is made primary. `confidence` in (0, 1]; `step` -1: the turn as a whole."""

    label: Label
    detail: str = ""
    tool: str = ""
    parameter: str = ""
    step: int = -1
    confidence: float = 1.0
    evidence: Mapping[str, Json] = field(default_factory=dict)
