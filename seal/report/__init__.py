"""What happened, for people and for other tools: text tables, plots, one HTML page, OpenTelemetry spans.

Reads finished rounds, judged rollouts and results of experiments from disk; trains, plays and changes nothing.
"""
