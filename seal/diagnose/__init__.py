"""Why a user turn failed, which turn is to blame, and how often that happens. A label is decided in `label_rules` (from
`turn_evidence`; without a gold program in `without_gold`), root or consequence in `root_cause`, which label a turn is
known by in `primary_label`; `profile` counts them, `label_worth` says what mending one is worth, `proof` proves it all.
"""

from seal.core.labels import DEFAULT_PRIORITY
from seal.diagnose.diagnosis import diagnose
from seal.diagnose.primary_label import parse_priority

__all__ = ["DEFAULT_PRIORITY", "diagnose", "parse_priority"]
