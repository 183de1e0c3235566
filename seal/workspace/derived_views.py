"""The views that answer more than one table does: derived_views.sql, with the labels that it speaks of filled in."""

import re
from collections.abc import Iterable
from pathlib import Path

from seal.core.labels import FAILURES, NOT_THE_POLICY

CERTAIN = 0.5  # a label less sure than that is a symptom of another


def _listed(labels: Iterable[str]) -> str:
    return ", ".join(f"'{label}'" for label in sorted(labels))


def _read() -> dict[str, str]:
    """View -> its SQL, in the order of the file."""
    text = Path(__file__).with_name("derived_views.sql").read_text(encoding="utf-8")
    text = text.format(failures=_listed(FAILURES), not_the_policy=_listed(NOT_THE_POLICY), certain=CERTAIN)
    return dict(re.findall(r"^CREATE VIEW (\w+) AS\n(.*?);$", text, re.MULTILINE | re.DOTALL))


DERIVED = _read()
