"""Playing held-out tasks: bare (the score that counts), and with the interface on (how much it is still needed)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seal.core.judged import Judged
from seal.core.seeds import RoundKey, seed_for
from seal.core.types import Json, Mode, Split, Task
from seal.diagnose.judge import judge
from seal.env.base import Environment
from seal.interface.state import InterfaceState
from seal.policy.base import Limits, Policy
from seal.rollout.engine import PlayRun, Request, play
from seal.rollout.plan import choose_tasks
from seal.settings.play import EvaluateParams
from seal.store.judged import write_judged
from seal.store.tables import write_table

Row = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Held:
    """One judged evaluation rollout and where it belongs."""

    split: Split
    mode: Mode
    trial: int
    task: Task
    judged: Judged


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All evaluation rollouts of one policy. `suite` names the environment."""

    suite: str
    held: tuple[Held, ...]

    def rows(self, round_id: str) -> list[Row]:
        """Rows of the `evaluations` table, sorted."""
        rows = [
            {
                "round": round_id,
                "phase": "evaluate",
                "rollout_id": h.judged.rollout.rollout_id,
                "suite": self.suite,
                "split": h.split,
                "mode": h.mode,
                "task_id": h.task.task_id,
                "trial": h.trial,
                "success": h.judged.success,
                "progress": h.judged.progress,
            }
            for h in self.held
        ]
        return sorted(rows, key=lambda row: (row["suite"], row["split"], row["mode"], row["task_id"], row["trial"]))

    def judged(self, split: str | None = None, mode: str | None = None) -> list[Judged]:
        return [h.judged for h in self.held if split in (None, h.split) and mode in (None, h.mode)]


def held_out(tasks: Sequence[Task], split: Split, n: int, run_seed: int) -> list[Task]:
    """`n` tasks of a split (0: all); the same ones in every round, so that rounds can be compared task by task."""
    return choose_tasks([task for task in tasks if task.split == split], n, run_seed, 0, f"evaluate-{split}")


Planned = tuple[Split, Mode, int, Request]  # of one rollout to play; the number is its trial


def plan_evaluation(tasks: Sequence[Task], params: EvaluateParams, key: RoundKey, shown: Mode) -> list[Planned]:
    """Everything to play.

    The split that is reported plays bare, and so does dev with `measure_dev`; with `measure_on` the former plays in the
    mode `shown`, too ("off": there is nothing to show). The seed of a (task, trial) is the same in every mode and
    round: comparisons are paired.
    """
    modes: list[tuple[Split, Mode]] = [(params.split, "off")]
    modes += [("dev", "off")] if params.measure_dev and params.split != "dev" else []
    modes += [(params.split, shown)] if params.measure_on and shown != "off" else []
    planned = []
    for split, mode in modes:
        for task in held_out(tasks, split, params.tasks, key.run_seed):
            for trial in range(params.trials):
                seed = seed_for(key.run_seed, 0, "evaluate", 0, task.task_id, trial)
                id_ = key.rollout_id("evaluate", int(mode != "off"), task.task_id, trial)
                planned.append((split, mode, trial, Request(id_, task, trial, seed, mode)))
    return planned


def evaluate_policy(
    env: Environment,
    policy: Policy,
    interface: InterfaceState,
    planned: Sequence[Planned],
    params: EvaluateParams,
    priority: Sequence[str],
    run: PlayRun = PlayRun(),
) -> Evaluation:
    """Play, verify and diagnose the held-out tasks that `plan_evaluation` planned."""
    requests = [request for *_, request in planned]
    limits = Limits(params.max_action_tokens, params.context)
    judged = judge(env, play(env, policy, requests, interface, limits, params.temperature, run), priority)
    return Evaluation(
        env.name,
        tuple(
            Held(split, mode, trial, request.task, of)
            for (split, mode, trial, request), of in zip(planned, judged, strict=True)
        ),
    )


def write_evaluation(folder: Path, evaluation: Evaluation, round_id: str, tasks: Sequence[Task]) -> None:
    """Every table of an evaluation but tokens, which nothing trains on. `tasks`: all of the environment."""
    write_judged(folder, evaluation.judged(), round_id, "evaluate", tasks=tasks)
    (folder / "tokens.parquet").unlink()
    write_table(folder / "evaluations.parquet", "evaluations", evaluation.rows(round_id))
