"""Held-out tasks: which are played (`suite`), and what is said of them with intervals (`metrics`, metrics.json).

Bare is the score that counts; with the interface shown it says how much the policy still needs it.
"""

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = ["do_nothing", "metrics", "suite"]
