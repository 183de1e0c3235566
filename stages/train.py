"""train@<round>: update the parent's policy on the collected rollouts, then on new ones under the new interface."""

from seal.pipeline.phases import train
from seal.pipeline.stage import Stage, main
from seal.train.ranks import rank


def run(stage: Stage) -> None:
    folder, parent, params = stage.folder, stage.parent, stage.entry
    state = stage.state(
        parent.checkpoint("policy", "factors", "replay"),
        start_policy=stage.start.checkpoint("policy").policy if params.train.reference == "start" else None,
        judged=folder.judged(stage.env),
        priority=folder.priority(params.diagnose.priority),
        interface=folder.interface(),
    )
    inputs = [folder.path / name for name in ("collect", "verify", "diagnose", "interface.json")]
    inputs += [parent.path / name for name in ("policy", "train/reweight.json", "train/replay.parquet")]
    steps = 0 if params.train.algorithm == "none" else params.train.steps
    with stage.run(steps, "step", *inputs) as run:
        state = train(state, params, run)
        if not rank().number:  # of several processes the first one writes
            folder.write_train(state, parent)


if __name__ == "__main__":
    main(run)
