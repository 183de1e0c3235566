"""collect@<round>: play groups of training tasks with the parent's policy under the parent's interface."""

from _bar import progress
from _stage import main

from seal.core.seeds import RoundKey
from seal.pipeline.stage import Stage
from seal.rollout.collect import collect
from seal.rollout.engine import PlayRun
from seal.store.files import atomic_dir, forget
from seal.store.tables import rows_of_rollouts, write_table


def run(stage: Stage) -> None:
    policy, interface, params = stage.policy(stage.parent), stage.interface(stage.parent), stage.entry.collect
    key, log = RoundKey(stage.id, stage.depth, stage.seed), stage.log(stage.parent)
    with progress(f"collect@{stage.id}", params.tasks * params.group_size) as played:
        rollouts = collect(stage.env, policy, interface, params, key, run=PlayRun(played, cache=log))
    with atomic_dir(stage.path("collect")) as out:
        for name, rows in rows_of_rollouts(rollouts, stage.id, "collect", tasks=stage.env.tasks()).items():
            write_table(out / f"{name}.parquet", name, rows)
    forget(log.folder)


if __name__ == "__main__":
    main(run)
