"""What the page shows beside metrics: tasks, episodes, uplifts and contract results, as the stages stored them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from seal.core.types import Task
from seal.report.data import Round
from seal.report.episodes import Episode


def stored_tasks(root: Path, rounds: Iterable[Round]) -> dict[str, Task]:
    """Task id -> task, of every environment the rounds play in whose table is there."""
    from seal.store.tables import tasks_of

    paths = [root / "data" / "tasks" / f"{env}.parquet" for env in sorted({str(r.metrics.get("env")) for r in rounds})]
    return {task.task_id: task for path in paths if path.exists() for task in tasks_of(path)}
