"""The contracts of a round: what real stages write passes, what cannot be is named with its rows and its way out."""

import math
import shutil

import pyarrow as pa
import pytest
from store_cases import write_tree

from seal.core.errors import ArtifactError, ContractError
from seal.store.contracts import expectations_of, validate_round
from seal.store.expectations import CLAIMS, GROUPS
from seal.store.files import write_json
from seal.store.parquet import write_parquet
from seal.store.schemas import TABLES
from seal.store.tables import read_table, write_table


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return write_tree(tmp_path_factory.mktemp("tree"))


def validate(root):
    rounds = root / "data" / "rounds"
    return validate_round(rounds / "r2", rounds / "r1", root / "data" / "tasks" / "shop.parquet")


def edit(path, name, change):
    """Rewrite a table through its rows, without the checks of a writer."""
    table = read_table(path, name)
    rows = change(table.to_pylist())
    write_parquet(path, pa.Table.from_pylist(rows, table.schema), TABLES[name].key)


def first(**values):
    return lambda rows: [{**rows[0], **values}, *rows[1:]]


def test_every_claim_is_about_a_table_of_a_group():
    tables = {name for places in GROUPS.values() for name in places}
    assert {claim.table for claim in CLAIMS} <= tables
    assert all(claim.group in ("", *GROUPS) for claim in CLAIMS)


def test_expectations_say_different_things():
    for name in TABLES:
        said = [(e.says, e.columns) for e in expectations_of(name, "collect", frozenset())]
        assert len(said) == len(set(said))


@pytest.mark.slow
def test_what_the_rooms_write_passes(tree, tmp_path, capfd):
    rows = validate(tree)
    assert all(row["success"] and row["round"] == "r2" for row in rows)
    datasets = {row["dataset"] for row in rows}
    assert {"collect/tokens", "verify/verdicts", "diagnose/profile", "train/weights", "evaluate/steps"} <= datasets
    assert any(row["expectation"] == "played by the parent's policy" for row in rows)
    write_table(tmp_path / "validation.parquet", "validation", rows)
    assert read_table(tmp_path / "validation.parquet", "validation").to_pylist() == rows
    out, err = capfd.readouterr()
    assert "Calculating" not in out + err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("verify/verdicts", first(rollout_id="ghost"), ['also verify/verdicts: "its rollout is in trajectories"']),
        (
            "verify/outcomes",
            lambda rows: rows[1:],
            ["collect/trajectories", "one outcome per rollout", "1 of 36 rows", "rollout_id="],
        ),
        (
            "collect/trajectories",
            first(policy_hash="other"),
            ["played by the parent's policy", "1 of 36", "collect@r2"],
        ),
        ("collect/tokens", first(loss_mask=[1], logprobs=[0.0]), ["lists of one length"]),
        ("diagnose/diagnoses", first(confidence=1.5), ["from 0 to 1 (confidence)", "diagnose@r2"]),
        ("diagnose/diagnoses", first(confidence=math.nan), ["from 0 to 1 (confidence)", "1 of ", "confidence=nan"]),
        ("interface/interface_items", first(tokens=-1), ["at least 0 (tokens)", "evolve_interface@r2"]),
        ("collect/steps", lambda rows: [], ['collect/steps: "enough rows"']),
    ],
)
def test_what_cannot_be_is_named(tree, tmp_path, file, change, said):
    shutil.copytree(tree, tmp_path / "tree", ignore=shutil.ignore_patterns("train", "evaluate"))
    edit(tmp_path / "tree" / "data" / "rounds" / "r2" / f"{file}.parquet", file.split("/")[1], change)
    with pytest.raises(ContractError) as caught:
        validate(tmp_path / "tree")
    for words in said:
        assert words in str(caught.value)


def test_a_round_without_what_it_needs_is_one_error(tree, tmp_path):
    shutil.copytree(tree, tmp_path / "tree")
    rounds = tmp_path / "tree" / "data" / "rounds"
    (rounds / "r2" / "verify" / "verdicts.parquet").unlink()
    with pytest.raises(ArtifactError, match=r"verdicts\.parquet"):
        validate(tmp_path / "tree")
    with pytest.raises(ArtifactError, match="no played tables"):
        validate_round(rounds / "r9")
    write_json(rounds / "r1" / "metrics.json", {})
    with pytest.raises(ArtifactError, match="without policy_hash"):
        validate_round(rounds / "r1", rounds / "r1")
