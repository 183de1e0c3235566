"""What happened, for people and for other tools: text tables, plots, one HTML page, OpenTelemetry spans.

Reads finished rounds, judged rollouts and results of experiments from disk; trains, plays and changes nothing.
"""

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = ["artifacts", "experiments", "html", "otel", "rounds", "stored_rollouts", "tables"]
