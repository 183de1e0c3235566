"""evaluate@<round>: the round's contracts, then held-out tasks with the trained policy, and metrics.json."""

import shutil

from _bar import evaluated
from _stage import main

from seal.evaluate.do_nothing import idle
from seal.evaluate.metrics import CURVE_COLUMNS, cost, curve_row, metrics, round_metrics
from seal.evaluate.suite import write_evaluation
from seal.pipeline.stage import Stage
from seal.store.contracts import validate_round
from seal.store.files import atomic_dir, forget, read_csv, read_json, write_csv, write_json
from seal.store.tables import read_table, write_table
from seal.workspace.lineage import tasks_path


def run(stage: Stage) -> None:
    entry, parent = stage.entry, stage.parent
    checked = validate_round(stage.path(""), stage.path("", parent), tasks_path(stage.root, entry.env))
    policy, before, after = stage.policy(stage.id), stage.interface(parent), stage.interface(stage.id)
    log, old = stage.log(stage.id), stage.path("evaluate", parent)
    evaluation = evaluated(stage, policy, after, stage.priority, log)
    rows, start = (
        read_table(old / name, "evaluations").to_pylist() for name in ("evaluations.parquet", "start.parquet")
    )
    scores = metrics(evaluation, stage.env.tasks(), entry.evaluate.split, rows, start)
    scores |= idle(stage.env, evaluation, entry.evaluate.split)
    found = round_metrics(
        scores,
        *(stage.id, parent, stage.depth, before, after, spent(stage)),
        read_json(stage.path("metrics.json", parent))["total"],
        env=entry.env,
        policy_hash=policy.hash,
    )
    with atomic_dir(stage.path("evaluate")) as out:
        write_evaluation(out, evaluation, stage.id, stage.env.tasks())
        write_table(out / "validation.parquet", "validation", checked)
        shutil.copy(old / "start.parquet", out / "start.parquet")
        write_csv(out / "curve.csv", [*read_csv(old / "curve.csv"), curve_row(found)], CURVE_COLUMNS)
    write_json(stage.path("metrics.json"), found)
    forget(log.folder)


def spent(stage: Stage) -> dict[str, dict[str, int]]:
    """Rollouts and sampled tokens of the round, and optimiser updates."""
    train, steps = stage.entry.train, read_csv(stage.path("train") / "curve.csv")
    fresh = {key: sum(int(row[key]) for row in steps if row["step"] != "0") for key in ("rollouts", "tokens")}
    return {
        "collect": cost(stage.judged()),
        "probe": read_json(stage.path("interface") / "spent.json"),
        "train": {**fresh, "updates": len(steps) * train.minibatches * train.num_iterations},
    }


if __name__ == "__main__":
    main(run)
