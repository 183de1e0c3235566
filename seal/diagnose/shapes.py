"""Error or not, read from a result's text: by seal.tools.shapes, as environments read it."""

from seal.tools.shapes import error_kind, error_text

__all__ = ["error_kind", "error_text"]
