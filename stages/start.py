"""start@<start>: the policy a line of rounds begins with, the bare interface, and what depth 0 leaves to depth 1."""

from seal.pipeline.stage import Stage, main
from seal.policy.start import write_start
from seal.store.files import atomic_dir


def run(stage: Stage) -> None:
    policy, folder = stage.entry.policy, stage.folder
    with stage.run(policy.get("warm_start", {}).get("steps", 0) or 1, "step", stage.task_table) as run:
        with atomic_dir(folder.path / "policy") as out:
            stepped = lambda row: run.on_progress(1)  # noqa: E731
            losses = write_start(policy, stage.env, out, stage.key.run_seed, stepped, run.resume_dir)
            run.on_progress(0 if losses else 1)
        folder.write_start(losses)


if __name__ == "__main__":
    main(run)
