"""train@<round>: update the parent's policy on the collected rollouts, then on fresh ones under the new interface."""

import shutil

from _bar import progress
from _stage import main

from seal.core.seeds import RoundKey
from seal.pipeline.stage import Stage
from seal.store.files import atomic_dir, forget, read_json, write_csv, write_json
from seal.store.judged import write_judged
from seal.store.tables import write_table
from seal.train.curve import CURVE
from seal.train.loop import Carried, train_round
from seal.train.on_policy import OnPolicy
from seal.train.ranks import rank
from seal.train.replay import replay_of, rows_of_replay
from seal.train.reweight import Factors


def run(stage: Stage) -> None:
    entry, parent = stage.entry, stage.parent
    inputs = [stage.path(what) for what in ("collect", "verify", "diagnose", "interface.json")]
    policy, left = stage.policy(parent), stage.path("train", parent)
    inputs += [stage.path("policy", parent), left / "reweight.json", left / "replay.parquet"]
    resume_dir = stage.resume_dir(*inputs)
    key = RoundKey(stage.id, stage.depth, stage.seed)
    start = stage.policy(stage.lineage.start(stage.id)) if entry.train.reference == "start" else None
    factors = Factors.of_json(read_json(left / "reweight.json"))
    before = Carried(factors, replay_of(left / "replay.parquet"), start)
    with progress(f"train@{stage.id}", 0 if entry.train.algorithm == "none" else entry.train.steps, "step") as stepped:
        result = train_round(
            policy,
            stage.judged(),
            OnPolicy(stage.env, stage.interface(stage.id), entry.collect, stage.priority, key),
            entry.train,
            before,
            resume_dir,
            lambda row: stepped(1),
        )
    if rank().number:
        return  # the first process writes
    with atomic_dir(stage.path("train")) as out:
        if result.played:
            write_judged(out, result.played, stage.id, "train", train_step=result.step_of, tasks=stage.env.tasks())
        write_table(out / "weights.parquet", "weights", result.weight_rows(stage.id))
        write_csv(out / "curve.csv", result.curve, CURVE)
        write_json(out / "reweight.json", result.factors.to_json())
        write_table(out / "replay.parquet", "replay", rows_of_replay(result.replay, stage.id))
    with atomic_dir(stage.path("policy")) as out:
        if result.curve:
            policy.save(out)
        else:  # nothing was trained
            shutil.copytree(stage.path("policy", parent), out, dirs_exist_ok=True)
    forget(resume_dir)


if __name__ == "__main__":
    main(run)
