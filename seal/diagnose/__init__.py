"""Why a user turn failed, which turn is to blame, and how often that happens. A label is decided in `label_rules` (from
`turn_evidence`; without a gold program in `without_gold`), root or consequence in `root_cause`, which label a turn is
known by in `primary_label`; `profile` counts them, `label_worth` says what mending one is worth, `proof` proves it all.
"""

from seal.diagnose.diagnosis import diagnose

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = ["diagnose", "diagnosis", "judge", "label_worth", "log_file", "profile", "proof"]
