"""Executable verdicts: every user turn's state and responses against the gold program."""
