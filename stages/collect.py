"""collect@<round>: play groups of training tasks with the parent's policy under the parent's interface."""

from _bar import progress
from _stage import Stage, main

from seal.rollout.collect import collect
from seal.store.files import atomic_dir
from seal.store.tables import rows_of_rollouts, write_table


def run(stage: Stage) -> None:
    policy, interface, params = stage.policy(stage.parent), stage.interface(stage.parent), stage.entry.collect
    with progress(f"collect@{stage.id}", params.tasks * params.group_size) as played:
        rollouts = collect(
            stage.env, policy, interface, params, stage.id, stage.depth, stage.seed, on_progress=played
        )  # fmt: skip
    with atomic_dir(stage.path("collect")) as out:
        for name, rows in rows_of_rollouts(rollouts, stage.id, "collect", tasks=stage.env.tasks()).items():
            write_table(out / f"{name}.parquet", name, rows)


if __name__ == "__main__":
    main(run)
