"""diagnose@<round>: labels for every user turn of the collected rollouts, and the failure profile they make."""

from seal.pipeline.phases import diagnose
from seal.pipeline.stage import Stage, main


def run(stage: Stage) -> None:
    state = stage.state(stage.parent.checkpoint("profile"), judged=stage.folder.verified(stage.env))
    learned = isinstance(stage.entry.diagnose.priority, str)
    stage.folder.write_diagnose(diagnose(state, stage.entry), learned)


if __name__ == "__main__":
    main(run)
