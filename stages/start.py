"""start@<start>: the policy a line of rounds begins with, the bare interface, and what depth 0 leaves to depth 1."""

from _bar import progress
from _stage import main

from seal.interface.state import InterfaceState
from seal.pipeline.stage import Stage
from seal.policy.start import write_start
from seal.store.files import atomic_dir, write_json
from seal.store.tables import write_table
from seal.train.reweight import Factors
from seal.workspace.lineage import tasks_path


def run(stage: Stage) -> None:
    resume = stage.resume_dir(tasks_path(stage.root, stage.entry.env))
    steps = stage.entry.policy.get("warm_start", {}).get("steps", 0)
    with progress(f"start@{stage.id}", steps or 1, "step") as stepped, atomic_dir(stage.path("policy")) as out:
        losses = write_start(
            stage.entry.policy, stage.env, out, stage.seed, lambda row: stepped(1), resume
        )  # fmt: skip
        stepped(0 if losses else 1)
    stage.path("interface.json").write_text(InterfaceState().to_json())
    with atomic_dir(stage.path("diagnose")) as out:
        write_table(out / "profile.parquet", "profile", [])
    with atomic_dir(stage.path("train")) as out:
        write_json(out / "reweight.json", Factors().to_json())
        write_table(out / "replay.parquet", "replay", [])
        rows = "".join(f"{step},{loss:.6f}\n" for step, loss in enumerate(losses))
        (out / "curve.csv").write_text(f"step,loss\n{rows}")


if __name__ == "__main__":
    main(run)
