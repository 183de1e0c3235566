"""Stored rollouts, judged or not yet, with all that is known of them, and the label rates they make."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from seal.core.types import Diagnosis, Json, Step, Task, UserTurn, Verdict
from seal.store import rows as nouns
from seal.workspace.views import rows

if TYPE_CHECKING:
    import duckdb

Points = list[tuple[dict[str, Any], float]]  # (attributes, value)
# Share of user turns by primary label and the tool it names; all labels of a round, phase and mode sum to 1.
RATES = """
WITH played AS (
  SELECT round, phase, rollout_id, interface_mode FROM trajectories WHERE round = $round AND phase = $phase
), turns AS (
  SELECT round, phase, interface_mode, count(DISTINCT (rollout_id, turn)) AS turns
  FROM played JOIN diagnoses USING (round, phase, rollout_id) GROUP BY ALL
)
SELECT * EXCLUDE (turns), n / turns AS rate FROM (
  SELECT round, phase, interface_mode, label, tool, count(*) AS n
  FROM played JOIN diagnoses USING (round, phase, rollout_id) WHERE "primary" GROUP BY ALL
) JOIN turns USING (round, phase, interface_mode) ORDER BY ALL
"""
SUCCESS = """
SELECT round, phase, interface_mode, avg(success::INT) AS rate FROM trajectories
WHERE round = $round AND phase = $phase AND success IS NOT NULL GROUP BY ALL ORDER BY ALL
"""


@dataclass(frozen=True, slots=True)
class StoredRollout:
    """A stored rollout: `row` of the view trajectories, its task where that is stored, what was done and found."""

    row: Mapping[str, Json]
    task: Task | None
    steps: Sequence[Step]
    verdicts: Sequence[Verdict]
    diagnoses: Sequence[Diagnosis]

    @property
    def env(self) -> str:
        return self.task.env if self.task else ""

    def turns(self) -> "list[Turn]":
        """All user turns that anything is known of."""
        known = (item.turn + 1 for items in (self.steps, self.verdicts, self.diagnoses) for item in items)
        n = max(self.row["n_turns"] or 0, *known, 0)
        return turns_of(n, self.task, self.steps, self.verdicts, self.diagnoses)


@dataclass(frozen=True, slots=True)
class Turn:
    """One user turn of a rollout; `user`: what the task holds of it, if anything."""

    number: int
    user: UserTurn | None
    steps: Sequence[Step]
    verdict: Verdict | None
    diagnoses: Sequence[Diagnosis]


def turns_of(
    n: int, task: Task | None, steps: Iterable[Step], verdicts: Iterable[Verdict], diagnoses: Iterable[Diagnosis]
) -> list[Turn]:
    """The first `n` user turns, each with what belongs to it."""
    users = dict(enumerate(task.turns)) if task else {}
    of_turn = {verdict.turn: verdict for verdict in verdicts}
    return [
        Turn(i, users.get(i), [s for s in steps if s.turn == i], of_turn.get(i), [d for d in diagnoses if d.turn == i])
        for i in range(n)
    ]


def stored_rollouts(
    con: "duckdb.DuckDBPyConnection", round_id: str, phase: str, rollout: str = ""
) -> Iterator[StoredRollout]:
    """The rollouts of a round and phase by task and sample, with all that is known of them; `rollout`: that one."""
    where, values = "round = ? AND phase = ?", [round_id, phase]
    if rollout:  # by itself, so that DuckDB need not read the others
        where, values = f"{where} AND rollout_id = ?", [*values, rollout]

    def of(table: str, order: str, noun: Callable[[Any], Any]) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        for row in rows(con, f"SELECT * FROM stored.{table} WHERE {where} ORDER BY rollout_id, {order}", values):
            found.setdefault(row["rollout_id"], []).append(noun(row))
        return found

    steps = of("steps", "turn, step", nouns.step_of)
    verdicts = of("verdicts", "turn", nouns.verdict_of)
    diagnoses = of("diagnoses", "turn, rank", nouns.diagnosis_of)
    chosen = f"SELECT task_id FROM trajectories WHERE {where}"
    stored = rows(con, f"SELECT * FROM stored.tasks WHERE task_id IN ({chosen}) ORDER BY env", values)
    tasks = {row["task_id"]: nouns.task_of(row) for row in stored}
    order = "train_step, task_id, sample, rollout_id"
    for row in rows(con, f"SELECT * FROM trajectories WHERE {where} ORDER BY {order}", values):
        found = (of_rollout.get(row["rollout_id"], ()) for of_rollout in (steps, verdicts, diagnoses))
        yield StoredRollout(row, tasks.get(row["task_id"]), *found)


def label_rates(con: "duckdb.DuckDBPyConnection", round_id: str, phase: str) -> dict[str, Points]:
    """Metric name -> (attributes, value) of each of its points."""
    values = {"round": round_id, "phase": phase}
    found: dict[str, Points] = {"seal.label.rate": [], "seal.label.turns": []}
    for row in rows(con, RATES, values):
        at = {**_place(row), "seal.label": row["label"], "gen_ai.tool.name": row["tool"]}
        found["seal.label.rate"].append((at, row["rate"]))
        found["seal.label.turns"].append((at, row["n"]))
    found["seal.success.rate"] = [(_place(row), row["rate"]) for row in rows(con, SUCCESS, values)]
    return found


def _place(row: Mapping[str, Any]) -> dict[str, Any]:
    return {f"seal.{name}": row[name] for name in ("round", "phase", "interface_mode")}
