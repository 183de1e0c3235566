"""evaluate_start@<start>: held-out tasks with the start's policy, interface bare: depth 0 of every curve."""

import shutil

from _bar import evaluated
from _stage import main

from seal.core.labels import DEFAULT_PRIORITY
from seal.evaluate.do_nothing import idle
from seal.evaluate.metrics import CURVE_COLUMNS, curve_row, metrics, round_metrics
from seal.evaluate.suite import write_evaluation
from seal.pipeline.stage import Stage
from seal.store.files import atomic_dir, forget, write_csv, write_json


def run(stage: Stage) -> None:
    entry, policy, interface = stage.entry, stage.policy(stage.id), stage.interface(stage.id)
    log = stage.log(stage.id)
    evaluation = evaluated(stage, policy, interface, DEFAULT_PRIORITY, log)
    scores = metrics(evaluation, stage.env.tasks(), entry.evaluate.split)
    scores |= idle(stage.env, evaluation, entry.evaluate.split)
    found = round_metrics(
        scores, stage.id, "", 0, interface, interface, {}, env=entry.env, policy_hash=policy.hash
    )  # fmt: skip
    with atomic_dir(stage.path("evaluate")) as out:
        write_evaluation(out, evaluation, stage.id, stage.env.tasks())
        shutil.copy(out / "evaluations.parquet", out / "start.parquet")
        write_csv(out / "curve.csv", [curve_row(found)], CURVE_COLUMNS)
    write_json(stage.path("metrics.json"), found)
    forget(log.folder)


if __name__ == "__main__":
    main(run)
