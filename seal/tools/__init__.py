"""Tool schemas and docs, calls as text and back, and what results and descriptions say in prose.

Nothing here executes anything.
"""

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = [
    "carried",
    "docs",
    "error_kinds",
    "fact_texts",
    "json_schema",
    "literal",
    "names",
    "parse",
    "prose",
    "schema",
]

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = [
    "carried", "docs", "error_kinds", "fact_texts", "json_schema", "literal", "names", "parse", "prose", "schema"
]  # fmt: skip
