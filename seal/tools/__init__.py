"""Tool schemas and docs, calls as text and back, and what results and descriptions say in prose.

Nothing here executes anything.
"""

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = ["docs", "error_kinds", "fact_texts", "literal", "parse", "prose", "schema"]
