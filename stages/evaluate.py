"""evaluate@<round>: the round's contracts, then held-out tasks with the trained policy, and metrics.json."""

from seal.pipeline.phases import evaluate, planned_evaluation
from seal.pipeline.stage import Stage, main
from seal.store.contracts import validate_round


def run(stage: Stage) -> None:
    folder, parent, params = stage.folder, stage.parent, stage.entry
    checked = validate_round(folder.path, parent.path, stage.task_table)
    state = stage.state(
        parent.checkpoint("interface", "evaluations", "start_evaluations", "metrics"),
        policy=folder.checkpoint("policy").policy,
        interface=folder.interface(),
        priority=folder.priority(params.diagnose.priority),
        spent=folder.spent(folder.judged(stage.env), params.train.minibatches * params.train.num_iterations),
    )
    inputs = [folder.path / name for name in ("policy", "interface.json")]
    with stage.run(len(planned_evaluation(state, params.evaluate, params.collect.mode)), "rollout", *inputs) as run:
        folder.write_evaluate(evaluate(state, params, run), parent, checked)


if __name__ == "__main__":
    main(run)
