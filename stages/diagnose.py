"""diagnose@<round>: labels for every user turn of the collected rollouts, and the failure profile they make."""

from dataclasses import asdict

from _stage import main

from seal.diagnose import diagnose
from seal.diagnose.profile import profile
from seal.diagnose.worth import drawn_priority
from seal.pipeline.stage import Stage
from seal.store.files import atomic_dir, write_json
from seal.store.tables import read_table, rows_of_diagnoses, verdicts_of, write_table


def run(stage: Stage) -> None:
    tasks, rollouts = stage.tasks, stage.rollouts()
    verdicts = verdicts_of(stage.path("verify"), rollouts)
    setting = stage.entry.diagnose.priority
    priority = drawn_priority(setting, stage.env, rollouts, verdicts)
    found = {r.rollout_id: diagnose(stage.env, tasks[r.task_id], r, verdicts[r.rollout_id], priority) for r in rollouts}
    played = [{"rollout_id": r.rollout_id, "task_id": r.task_id, "mode": r.mode} for r in rollouts]
    labels = [{"rollout_id": rollout_id, **asdict(d)} for rollout_id, turns in found.items() for d in turns]
    categories = {task_id: task.category for task_id, task in tasks.items()}
    before = read_table(stage.path("diagnose", stage.parent) / "profile.parquet", "profile").to_pylist()
    with atomic_dir(stage.path("diagnose")) as out:
        if isinstance(setting, str):
            write_json(out / "priority.json", list(priority))
        write_table(out / "diagnoses.parquet", "diagnoses", rows_of_diagnoses(found, stage.id, "collect"))
        write_table(out / "profile.parquet", "profile", profile(played, labels, categories, before), round=stage.id)


if __name__ == "__main__":
    main(run)
