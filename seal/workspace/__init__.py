"""A workspace on disk: params.yaml, the tree of rounds, DVC and its lock, and SQL views over what was played.

Knows where every file of a round lies and what made it; plays and trains nothing itself.
"""

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = ["dvc", "lineage", "lock", "params_file", "views"]
