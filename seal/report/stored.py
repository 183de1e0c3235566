"""What the page shows beside metrics: tasks, episodes, what cues were worth, contracts; as the stages stored them."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from seal.core.judged import Judged
from seal.core.types import Json, Task
from seal.evolve.uplift import MIN_TASKS, uplifts
from seal.report.episodes import Episode
from seal.report.rounds import Round
from seal.store.judged import read_judged
from seal.store.tables import tasks_of
from seal.workspace.lineage import tasks_path
from seal.workspace.views import connect, rows

Interval = tuple[float, float, float]


def stored_tasks(root: Path, rounds: Iterable[Round]) -> dict[str, Task]:
    """Task id -> task, of every environment of the rounds. Its table may lack where their rollouts are not here."""
    played: dict[Path, bool] = {}
    for r in rounds:
        path = tasks_path(root, str(r.metrics.get("env")))
        played[path] = played.get(path, False) or (r.folder / "evaluate" / "trajectories.parquet").exists()
    return {t.task_id: t for path in sorted(played) if path.exists() or played[path] for t in tasks_of(path)}


def stored_episodes(r: Round, tasks: Mapping[str, Task], split: str = "test") -> list[Episode]:
    """The bare evaluation episodes of a round, first trials, sorted by task; none where the tables are not there."""
    folder = r.folder / "evaluate"
    if not tasks or not (folder / "trajectories.parquet").exists():
        return []
    judged = read_judged(folder, folder, folder, trains=False)
    found = [Episode(tasks[j.rollout.task_id], j) for j in judged if j.bare and not j.rollout.sample]
    return sorted((e for e in found if e.task.split == split), key=lambda e: e.task.task_id)


def stored_uplifts(line: Sequence[Round], tasks: Mapping[str, Task], most: int) -> list[tuple[str, Interval]]:
    """(cue, (uplift, low, high)) of the cues of a line of rounds, best first, from the rollouts of training.

    A cue is judged where most rollouts did without it; one that too few tasks tell of is left out.
    """
    found: dict[str, tuple[str, dict[str, Json]]] = {}
    toolsets = {task_id: task.toolset for task_id, task in tasks.items()}
    for r in line:
        texts = {item.id: f"{item.target}: {item.text}" for item in r.interface.active}
        for row in uplifts(_played(r), r.interface, toolsets or None):
            known = found.get(row["item"])
            if row["tasks"] >= MIN_TASKS and (not known or row["n_without"] > known[1]["n_without"]):
                found[row["item"]] = texts[row["item"]], row
    telling = sorted(found.values(), key=lambda pair: (-pair[1]["n_without"], pair[0]))[:most]
    telling.sort(key=lambda pair: (-pair[1]["uplift"], pair[0]))
    return [(text, (row["uplift"], row["low"], row["high"])) for text, row in telling]


def stored_copying(root: Path) -> dict[str, str]:
    """Round -> how many of its training rollouts repeat the words of a cue; of rounds that collected with cues."""
    counts = rows(connect(root), """
        SELECT round, sum(if(interface_mode = 'off', 0, copying)) AS evolved,
          sum(if(interface_mode = 'off', 0, rollouts)) AS of_evolved,
          sum(if(interface_mode = 'off', copying, 0)) AS bare,
          sum(if(interface_mode = 'off', rollouts, 0)) AS of_bare
        FROM copying WHERE phase <> 'evaluate' GROUP BY round
    """)  # fmt: skip
    return {
        n["round"]: f"{n['evolved']:,} of {n['of_evolved']:,} evolved training rollouts repeat three words in a row of "
        f"a cue that they had, {n['bare']:,} of {n['of_bare']:,} bare ones do by themselves"
        for n in counts
    }


def stored_validation(rounds: Iterable[Round]) -> str:
    """How many expectations each round met, "" where no round has its validation table."""
    said = []
    for r in rounds:
        if rows := r.rows("validation"):
            datasets = len({row["dataset"] for row in rows})
            said.append(f"{r.id}: {sum(row['success'] for row in rows)} of {len(rows)} hold ({datasets} tables)")
    return ", ".join(said)


def _played(r: Round) -> list[Judged]:
    """The rollouts of a round's training steps; none where the tables are not there."""
    folder = r.folder / "train"
    there = (folder / "trajectories.parquet").exists()
    return read_judged(folder, folder, folder, trains=False) if there else []
