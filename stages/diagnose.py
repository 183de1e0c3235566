"""diagnose@<round>: labels for every user turn of the collected rollouts, and the failure profile they make."""

from _stage import main

from seal.diagnose.judge import relabelled
from seal.diagnose.label_worth import drawn_priority
from seal.diagnose.profile import profile
from seal.pipeline.stage import Stage
from seal.store.files import atomic_dir, write_json
from seal.store.judged import judged_of
from seal.store.tables import outcomes_of, read_table, rows_of_diagnoses, verdicts_of, write_table


def run(stage: Stage) -> None:
    rollouts, verify, setting = stage.rollouts(), stage.path("verify"), stage.entry.diagnose.priority
    verified = judged_of(rollouts, verdicts_of(verify, rollouts), {}, outcomes_of(verify))
    priority = drawn_priority(setting, stage.env, verified)
    judged = relabelled(stage.env, verified, priority)
    found = {j.rollout.rollout_id: j.diagnoses for j in judged}
    categories = {task_id: task.category for task_id, task in stage.tasks.items()}
    before = read_table(stage.path("diagnose", stage.parent) / "profile.parquet", "profile").to_pylist()
    with atomic_dir(stage.path("diagnose")) as out:
        if isinstance(setting, str):
            write_json(out / "priority.json", list(priority))
        write_table(out / "diagnoses.parquet", "diagnoses", rows_of_diagnoses(found, stage.id, "collect"))
        write_table(out / "profile.parquet", "profile", profile(judged, categories, before), round=stage.id)


if __name__ == "__main__":
    main(run)
