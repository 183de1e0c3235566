"""prepare@<env>: the task table of an environment, from its seeded generator or its pinned package."""

from seal.core.errors import ParamError
from seal.env import env_of
from seal.pipeline.stage import Stage, main
from seal.store.tables import rows_of_tasks, write_table
from seal.workspace.lineage import tasks_path


def run(stage: Stage) -> None:
    envs = stage.lineage.params.envs
    if stage.id not in envs:
        raise ParamError("environment", stage.id, f"declared in params.yaml: {', '.join(envs) or 'none'}")
    env = env_of(stage.lineage.params, stage.id)
    env.prove()
    write_table(tasks_path(stage.root, stage.id), "tasks", rows_of_tasks(env.tasks()))


if __name__ == "__main__":
    main(run)
