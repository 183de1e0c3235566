"""verify@<round>: a verdict for every user turn of the collected rollouts, and each rollout's outcome."""

from _stage import main

from seal.pipeline.stage import Stage
from seal.store.files import atomic_dir
from seal.store.tables import rows_of_outcomes, rows_of_verdicts, write_table
from seal.verify.rollout import progress, success, verify_rollout


def run(stage: Stage) -> None:
    rollouts, verdicts, outcomes = stage.rollouts(), {}, {}
    for rollout in rollouts:
        task = stage.tasks[rollout.task_id]
        found = verify_rollout(stage.env, task, rollout)
        verdicts[rollout.rollout_id] = found
        outcomes[rollout.rollout_id] = success(task, found, rollout), progress(task, found)
    with atomic_dir(stage.path("verify")) as out:
        write_table(out / "verdicts.parquet", "verdicts", rows_of_verdicts(verdicts, stage.id, "collect"))
        write_table(out / "outcomes.parquet", "outcomes", rows_of_outcomes(rollouts, outcomes, stage.id, "collect"))


if __name__ == "__main__":
    main(run)
