"""Executable verdicts: every user turn's state and responses against the gold program, or by a grader.

`verify_rollout` is the one way to judge a rollout; environments may have a rule of their own.
"""

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = ["rollout", "turns"]
