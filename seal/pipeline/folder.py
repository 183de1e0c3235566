"""A round's folder as the fields of a RoundState, and back: the one place that knows which file holds which field.

    policy/  interface.json  diagnose/profile.parquet  train/reweight.json  train/replay.parquet
    evaluate/evaluations.parquet  evaluate/start.parquet  metrics.json       what the next round reads (`checkpoint`)
    collect/  verify/  diagnose/  interface/  train/  evaluate/             tables of the phases

Every table appears whole or not at all. Readers raise ArtifactError for what is missing or damaged.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seal.core.errors import REMAKE, ArtifactError
from seal.core.judged import Judged
from seal.core.types import Rollout
from seal.env.base import Environment
from seal.evaluate.metrics import CURVE_COLUMNS, cost, curve_row
from seal.evaluate.suite import write_evaluation
from seal.interface.state import InterfaceState, load_interface
from seal.pipeline.state import Checkpoint, RoundState
from seal.policy import counter_of, load_policy
from seal.store.files import NUMBER, atomic_dir, atomic_file, read_csv, read_json, write_csv, write_json
from seal.store.judged import judged_of, read_judged, write_judged
from seal.store.tables import (
    outcomes_of,
    read_table,
    rollouts_of,
    rows_of_diagnoses,
    rows_of_items,
    rows_of_outcomes,
    rows_of_rollouts,
    rows_of_verdicts,
    verdicts_of,
    write_table,
)
from seal.train.curve import CURVE
from seal.train.replay import replay_of, rows_of_replay
from seal.train.reweight import Factors


@dataclass(frozen=True, slots=True)
class RoundFolder:
    """The folder of the round or start `id`."""

    path: Path
    id: str

    # What the next round reads

    def checkpoint(self, *fields: str, **known: Any) -> Checkpoint:
        """A finished round; where fields are named, only these are read. `known`: fields that need not be read."""
        readers: Mapping[str, Callable[[], Any]] = {
            "policy": lambda: load_policy(self.path / "policy"),
            "interface": self.interface,
            "profile": lambda: self._rows("diagnose/profile", "profile"),
            "factors": lambda: Factors.of_json(read_json(self.path / "train" / "reweight.json")),
            "replay": lambda: replay_of(self.path / "train" / "replay.parquet"),
            "evaluations": lambda: self._rows("evaluate/evaluations", "evaluations"),
            "start_evaluations": lambda: self._rows("evaluate/start", "evaluations"),
            "metrics": lambda: read_json(self.path / "metrics.json", {"strict": {"mean": NUMBER}, "total": dict}),
        }
        wanted = fields or [name for name in readers if name not in known]
        return Checkpoint(self.id, **known, **{name: readers[name]() for name in wanted})

    def write_checkpoint(self, checkpoint: Checkpoint) -> None:
        """All that `checkpoint` reads, and nothing else; the policy only where there is one with weights."""
        if checkpoint.policy is not None and checkpoint.policy.model is not None:
            checkpoint.policy.save(self.path / "policy")
        self._write_interface(checkpoint.interface)
        write_table(self.path / "diagnose" / "profile.parquet", "profile", checkpoint.profile, round=self.id)
        self._write_carried(self.path / "train", checkpoint.factors, checkpoint.replay)
        write_table(self.path / "evaluate" / "evaluations.parquet", "evaluations", checkpoint.evaluations)
        write_table(self.path / "evaluate" / "start.parquet", "evaluations", checkpoint.start_evaluations)
        write_json(self.path / "metrics.json", dict(checkpoint.metrics))

    def interface(self) -> InterfaceState:
        return load_interface(self.path / "interface.json")

    # What phases read of their own round

    def rollouts(self, env: Environment) -> list[Rollout]:
        """The collected rollouts. Raises ArtifactError for one of a task that there is not."""
        return self._of_tasks(rollouts_of(self.path / "collect"), env)

    def verified(self, env: Environment) -> list[Judged]:
        """The same with their verdicts and outcomes."""
        rollouts = self.rollouts(env)
        verdicts, outcomes = verdicts_of(self.path / "verify", rollouts), outcomes_of(self.path / "verify")
        return judged_of(rollouts, verdicts, {}, outcomes)

    def judged(self, env: Environment) -> list[Judged]:
        """The same with their labels, too."""
        found = read_judged(*(self.path / name for name in ("collect", "verify", "diagnose")))
        self._of_tasks([j.rollout for j in found], env)
        return found

    def priority(self, setting: str | Sequence[str]) -> Sequence[str]:
        """The order of labels: the round's own, or what its diagnose stage drew from the collected rollouts."""
        return read_json(self.path / "diagnose" / "priority.json") if isinstance(setting, str) else setting

    def profile(self) -> list[dict[str, Any]]:
        return self._rows("diagnose/profile", "profile")

    def spent(self, judged: Sequence[Judged], updates_a_step: int) -> dict[str, Mapping[str, int]]:
        """What `train` says was played, from the files that it wrote."""
        steps, collected = read_csv(self.path / "train" / "curve.csv"), cost(j.rollout for j in judged)
        played = {key: sum(int(row[key]) for row in steps) - collected[key] if steps else 0 for key in collected}
        return {
            "collect": collected,
            "probe": read_json(self.path / "interface" / "spent.json"),
            "train": {**played, "updates": len(steps) * updates_a_step},
        }

    # What phases write

    def write_collect(self, state: RoundState) -> None:
        with atomic_dir(self.path / "collect") as out:
            for name, rows in rows_of_rollouts(state.rollouts, self.id, "collect", tasks=state.env.tasks()).items():
                write_table(out / f"{name}.parquet", name, rows)

    def write_verify(self, state: RoundState) -> None:
        verdicts = {j.rollout.rollout_id: j.verdicts for j in state.judged}
        outcomes = {j.rollout.rollout_id: (j.success, j.progress) for j in state.judged}
        rows = rows_of_outcomes([j.rollout for j in state.judged], outcomes, self.id, "collect")
        with atomic_dir(self.path / "verify") as out:
            write_table(out / "verdicts.parquet", "verdicts", rows_of_verdicts(verdicts, self.id, "collect"))
            write_table(out / "outcomes.parquet", "outcomes", rows)

    def write_diagnose(self, state: RoundState, learned: bool) -> None:
        """`learned`: the priority is no parameter of the round, it comes from its rollouts."""
        diagnoses = {j.rollout.rollout_id: j.diagnoses for j in state.judged}
        with atomic_dir(self.path / "diagnose") as out:
            if learned:
                write_json(out / "priority.json", list(state.priority))
            write_table(out / "diagnoses.parquet", "diagnoses", rows_of_diagnoses(diagnoses, self.id, "collect"))
            write_table(out / "profile.parquet", "profile", state.profile, round=self.id)

    def write_evolve(self, state: RoundState) -> None:
        evolved, interface = state.evolved, state.interface
        self._write_interface(interface)
        count = counter_of(state.parent.policy)
        items = rows_of_items(interface.items, interface.hash, self.id, evolved.uplifts, count)
        with atomic_dir(self.path / "interface") as out:
            write_table(out / "interface_items.parquet", "interface_items", items)
            write_table(out / "changes.parquet", "changes", evolved.changes)
            write_table(out / "decisions.parquet", "decisions", evolved.decisions)
            write_json(out / "spent.json", dict(evolved.spent))

    def write_train(self, state: RoundState, parent: "RoundFolder") -> None:
        trained = state.trained
        with atomic_dir(self.path / "train") as out:
            if trained.played:
                steps = trained.step_of
                write_judged(out, trained.played, self.id, "train", train_step=steps, tasks=state.env.tasks())
            write_table(out / "weights.parquet", "weights", trained.weight_rows(self.id))
            write_csv(out / "curve.csv", trained.curve, CURVE)
            self._write_carried(out, trained.factors, trained.replay)
        with atomic_dir(self.path / "policy") as out:
            if trained.curve:
                state.policy.save(out)
            else:  # nothing was trained
                shutil.copytree(parent.path / "policy", out, dirs_exist_ok=True)

    def write_evaluate(self, state: RoundState, parent: "RoundFolder", checked: Sequence[Mapping[str, Any]]) -> None:
        """`checked`: rows of the `validation` table (seal.store.contracts)."""
        with atomic_dir(self.path / "evaluate") as out:
            write_evaluation(out, state.evaluation, self.id, state.env.tasks())
            write_table(out / "validation.parquet", "validation", checked)
            shutil.copy(parent.path / "evaluate" / "start.parquet", out / "start.parquet")
            before = read_csv(parent.path / "evaluate" / "curve.csv")
            write_csv(out / "curve.csv", [*before, curve_row(state.metrics)], CURVE_COLUMNS)
        write_json(self.path / "metrics.json", state.metrics)

    def write_evaluate_start(self, state: RoundState) -> None:
        with atomic_dir(self.path / "evaluate") as out:
            write_evaluation(out, state.evaluation, self.id, state.env.tasks())
            shutil.copy(out / "evaluations.parquet", out / "start.parquet")
            write_csv(out / "curve.csv", [curve_row(state.metrics)], CURVE_COLUMNS)
        write_json(self.path / "metrics.json", state.metrics)

    def write_start(self, losses: Sequence[float]) -> None:
        """What depth 0 leaves to depth 1, beside its policy: nothing learned. `losses`: of its warm start."""
        self._write_interface(InterfaceState())
        with atomic_dir(self.path / "diagnose") as out:
            write_table(out / "profile.parquet", "profile", [])
        with atomic_dir(self.path / "train") as out:
            self._write_carried(out, Factors(), [])
            rows = "".join(f"{step},{loss:.6f}\n" for step, loss in enumerate(losses))
            (out / "curve.csv").write_text(f"step,loss\n{rows}")

    def _write_interface(self, interface: InterfaceState) -> None:
        with atomic_file(self.path / "interface.json") as partial:
            partial.write_text(interface.to_json())

    def _write_carried(self, out: Path, factors: Factors, replay: Sequence[Any]) -> None:
        write_json(out / "reweight.json", factors.to_json())
        write_table(out / "replay.parquet", "replay", rows_of_replay(replay, self.id))

    def _rows(self, file: str, name: str) -> list[dict[str, Any]]:
        return read_table(self.path / f"{file}.parquet", name).to_pylist()

    def _of_tasks(self, rollouts: list[Rollout], env: Environment) -> list[Rollout]:
        if unknown := sorted({rollout.task_id for rollout in rollouts} - {task.task_id for task in env.tasks()}):
            value = f"{self.path / 'collect' / 'trajectories.parquet'}: {env.name} has no task {unknown[0]}"
            raise ArtifactError("table", value, REMAKE)
        return rollouts
