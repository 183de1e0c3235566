"""Judged rollouts on disk: the tables of trajectories to diagnoses."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seal.core.errors import ArtifactError
from seal.core.judged import Judged
from seal.core.types import Diagnosis, Rollout, Verdict
from seal.store import tables
from seal.store.schemas import OF_TRAINING


def read_training(train: Path) -> list[Judged]:
    """The fresh rollouts of a round's training; none where it played none. Raises ArtifactError for a missing table."""
    played = any((train / f"{name}.parquet").exists() for name in OF_TRAINING)
    return read_judged(train, train, train) if played else []


def judged_of(
    rollouts: Sequence[Rollout],
    verdicts: Mapping[str, Sequence[Verdict]],
    diagnoses: Mapping[str, Sequence[Diagnosis]],
    outcomes: Mapping[str, tuple[bool, float]],
) -> list[Judged]:
    """Stored rollouts with what the verify and diagnose stages wrote, by rollout id; outcomes: (success, progress)."""
    try:
        return [
            Judged(r, tuple(verdicts[r.rollout_id]), tuple(diagnoses.get(r.rollout_id, ())), *outcomes[r.rollout_id])
            for r in rollouts
        ]
    except KeyError as error:
        raise ArtifactError("verdict of rollout", error.args[0], "run the round's verify stage again") from None


def read_judged(collect: Path, verify: Path, diagnose: Path, trains: bool = True) -> list[Judged]:
    """The rollouts of a round's collect folder with what the folders of verify and diagnose say of them.

    Raises ArtifactError for a table that is missing (for who `trains` on them that of the tokens too), or that lacks
    rows of what another one tells of.
    """
    if trains and not (path := collect / "tokens.parquet").exists():
        raise ArtifactError("table", path, "run the stage that writes it, or `dvc checkout`")
    rollouts, outcomes = tables.rollouts_of(collect), tables.outcomes_of(verify)
    verdicts, diagnoses = tables.verdicts_of(verify, rollouts), tables.diagnoses_of(diagnose)
    ids = [r.rollout_id for r in rollouts]
    tables.check_counts(verify / "outcomes.parquet", dict.fromkeys(outcomes, 1), dict.fromkeys(ids, 1), "trajectories")
    turns = {id_: len(found) for id_, found in verdicts.items()}
    labelled = {id_: sum(d.primary for d in found) for id_, found in diagnoses.items()}
    tables.check_counts(diagnose / "diagnoses.parquet", labelled, turns, "verdicts")
    return judged_of(rollouts, verdicts, diagnoses, outcomes)


def write_judged(folder: Path, judged: Sequence[Judged], round_id: str, phase: str, **more: Any) -> None:
    """All tables of played, verified and diagnosed rollouts in one folder; `more` as for rows_of_rollouts."""
    rollouts = [j.rollout for j in judged]
    rows = tables.rows_of_rollouts(rollouts, round_id, phase, **more)
    rows["verdicts"] = tables.rows_of_verdicts({j.rollout.rollout_id: j.verdicts for j in judged}, round_id, phase)
    rows["diagnoses"] = tables.rows_of_diagnoses({j.rollout.rollout_id: j.diagnoses for j in judged}, round_id, phase)
    outcomes = {j.rollout.rollout_id: (j.success, j.progress) for j in judged}
    rows["outcomes"] = tables.rows_of_outcomes(rollouts, outcomes, round_id, phase)
    for name, of_table in rows.items():
        tables.write_table(folder / f"{name}.parquet", name, of_table)
