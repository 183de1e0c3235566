"""One round as one value: `state` is the value, `phases` composes it, `folder` is its form on disk.

DVC's stages (`stage`: one process) and experiments call the same phases. `convergence` says when a line may stop.
"""

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = ["convergence", "folder", "phases", "stage", "state"]
