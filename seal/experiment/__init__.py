"""Multi-seed comparisons: arms as data (`arms`), lines of rounds (`jobs`, `runs`, `starts`), measured elsewhere, too
(`transfer`), kept as Parquet (`results`) and summarised with intervals over seeds and scenarios (`summary`).

Runs are resumable and keyed by a digest of their parameters.
"""

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = ["arms", "jobs", "results", "runs", "summary", "transfer"]
