"""Whether the user's tools and tasks are still those of the stored task table: DVC knows no file of theirs."""

from pathlib import Path

from seal.core.errors import SealError
from seal.env.custom import CustomEnv, workspace
from seal.settings.typed import plain
from seal.store.tables import tasks_of
from seal.workspace.lineage import Lineage, tasks_path

CHANGED = "its tools or tasks"


def changed_tools(root: Path, lineage: Lineage) -> dict[str, str]:
    """{"custom": what changed} where the table that `prepare@custom` wrote is another than it would write now; else {}.

    Files that no longer load have changed as well: the stage tells what is wrong with them.
    """
    name = CustomEnv.name
    path = tasks_path(root, name)
    if name not in lineage.params.envs or not path.exists() or root.resolve() != workspace().resolve():
        return {}
    try:
        now = CustomEnv(**plain(lineage.params.envs[name])).tasks()
        before = tasks_of(path)
    except SealError:
        return {name: CHANGED}
    same = sorted(now, key=lambda task: task.task_id) == sorted(before, key=lambda task: task.task_id)
    return {} if same else {name: CHANGED}
