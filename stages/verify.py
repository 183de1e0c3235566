"""verify@<round>: a verdict for every user turn of the collected rollouts, and each rollout's outcome."""

from seal.pipeline.phases import verify
from seal.pipeline.stage import Stage, main
from seal.pipeline.state import Checkpoint


def run(stage: Stage) -> None:
    state = stage.state(Checkpoint(stage.parent.id), rollouts=stage.folder.rollouts(stage.env))
    stage.folder.write_verify(verify(state, stage.entry))


if __name__ == "__main__":
    main(run)
