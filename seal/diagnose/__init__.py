"""Diagnosis: why a user turn failed, which turn is to blame, and how often that happens."""

from seal.core.labels import DEFAULT_PRIORITY
from seal.diagnose.diagnosis import diagnose
from seal.diagnose.primary_label import parse_priority

__all__ = ["DEFAULT_PRIORITY", "diagnose", "parse_priority"]
