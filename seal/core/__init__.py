"""Nouns that every room shares: tasks, calls, rollouts, verdicts, labels, judged rollouts; seeds, errors, statistics.

Immutable values and pure functions. It imports nothing of the other rooms, and they may import all of it.
"""

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = ["errors", "judged", "labels", "seeds", "statistics", "types"]
