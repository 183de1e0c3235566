"""collect@<round>: play groups of training tasks with the parent's policy under the parent's interface."""

from seal.pipeline.phases import collect
from seal.pipeline.stage import Stage, main


def run(stage: Stage) -> None:
    parent, params = stage.parent, stage.entry.collect
    state = stage.state(parent.checkpoint("policy", "interface"))
    inputs = [parent.path / name for name in ("policy", "interface.json")]
    with stage.run(params.tasks * params.group_size, "rollout", *inputs) as run:
        stage.folder.write_collect(collect(state, stage.entry, run))


if __name__ == "__main__":
    main(run)
