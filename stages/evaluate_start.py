"""evaluate_start@<start>: held-out tasks with the start's policy, interface bare: depth 0 of every curve."""

from seal.core.labels import DEFAULT_PRIORITY
from seal.pipeline.phases import evaluate_start, planned_evaluation
from seal.pipeline.stage import Stage, main
from seal.pipeline.state import Checkpoint


def run(stage: Stage) -> None:
    folder, params = stage.folder, stage.entry.evaluate
    policy = folder.checkpoint("policy").policy
    state = stage.state(Checkpoint(""), policy=policy, interface=folder.interface(), priority=DEFAULT_PRIORITY)
    inputs = [folder.path / name for name in ("policy", "interface.json")]
    with stage.run(len(planned_evaluation(state, params, "off")), "rollout", *inputs) as run:
        folder.write_evaluate_start(evaluate_start(state, params, run))


if __name__ == "__main__":
    main(run)
