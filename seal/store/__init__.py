"""Artifacts on disk: schemas, byte-stable Parquet, contracts.

Values of seal.core go in and come back the same; the same rows are the same bytes; a file appears whole or not at all.
"""

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = ["contracts", "files", "judged", "parquet", "rows", "schemas", "tables"]
