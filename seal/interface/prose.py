"""Allowed values that docs tell only in prose: read by seal.tools.prose, named here for the rooms of the interface."""

from seal.tools.prose import enum_in_text, enum_of

__all__ = ["enum_in_text", "enum_of"]
