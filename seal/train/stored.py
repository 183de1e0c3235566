"""Judged rollouts on disk: the tables of trajectories to diagnoses."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seal.store.tables import (
    diagnoses_of,
    outcomes_of,
    rollouts_of,
    rows_of_diagnoses,
    rows_of_outcomes,
    rows_of_rollouts,
    rows_of_verdicts,
    verdicts_of,
    write_table,
)
from seal.train.judged import Judged
from seal.train.loop import pair


def read_judged(collect: Path, verify: Path, diagnose: Path) -> list[Judged]:
    """The rollouts of a round's collect folder with what the folders of verify and diagnose say of them."""
    return pair(rollouts_of(collect), verdicts_of(verify), diagnoses_of(diagnose), outcomes_of(verify))


def write_judged(folder: Path, judged: Sequence[Judged], round_id: str, phase: str, **more: Any) -> None:
    """All tables of played, verified and diagnosed rollouts in one folder; `more` as for rows_of_rollouts."""
    rollouts = [j.rollout for j in judged]
    tables = rows_of_rollouts(rollouts, round_id, phase, **more)
    tables["verdicts"] = rows_of_verdicts({j.rollout.rollout_id: j.verdicts for j in judged}, round_id, phase)
    tables["diagnoses"] = rows_of_diagnoses({j.rollout.rollout_id: j.diagnoses for j in judged}, round_id, phase)
    outcomes = {j.rollout.rollout_id: (j.success, j.progress) for j in judged}
    tables["outcomes"] = rows_of_outcomes(rollouts, outcomes, round_id, phase)
    for name, rows in tables.items():
        write_table(folder / f"{name}.parquet", name, rows)
