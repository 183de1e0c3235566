"""Transfer: trained policies measured elsewhere, once, with gains that are paired there."""

import shutil

import pytest
from test_evaluate_experiment import FAULTY, PARAMS, SMALL, _args, _params

from seal.commands import experiment as command
from seal.core.errors import ParamError
from seal.env import load_env
from seal.experiment import transfer
from seal.experiment.jobs import folder_of, plan
from seal.experiment.runs import run_jobs
from seal.experiment.transfer import place_of, run_transfer, summarise_transfer
from seal.policy.start import write_start
from seal.store.parquet import read_parquet


def test_scores_elsewhere_are_measured_once_and_paired_with_the_start_there(tmp_path, monkeypatch):
    jobs = plan(FAULTY, "transfer", 2, 1)
    places = [place_of(FAULTY, "compliance")]
    found = run_transfer(jobs, tmp_path, places)
    assert {(f["arm"], f["depth"], f["to"]) for f in found} == {
        (arm, depth, to) for arm in ("vanilla", "seal") for depth in (0, 1) for to in ("", "compliance")
    }
    scenarios = {
        to: {row[2]: row[2] for f in found if f["to"] == to for row in f["outcomes"]} for to in ("", "compliance")
    }
    rows = summarise_transfer(found, scenarios, "test")
    assert [(row["to"], row["arm"], row["seeds"]) for row in rows] == [
        (to, arm, 2) for to in ("", "compliance") for arm in ("vanilla", "seal")
    ]
    assert all(row["gain"] == row["margin"] == 0.0 for row in rows)  # it has no weights to train
    monkeypatch.setattr(transfer, "_measure", None)
    assert [transfer._transfer(job, tmp_path, places) for job in jobs]


def test_the_command_writes_what_it_prints(tmp_path, capsys):
    (tmp_path / "params.yaml").write_text(PARAMS)
    words = ["transfer", "--seeds", "1", "--rounds", "1", "--to", "compliance", "--results", str(tmp_path / "results")]
    assert command.run(_args(tmp_path, *words)) == 0
    out = capsys.readouterr().out
    assert "shop (home)" in out and "compliance" in out
    table = read_parquet(tmp_path / "results" / "transfer.parquet").to_pylist()
    assert [(row["to"], row["arm"]) for row in table] == [
        (to, arm) for to in ("", "compliance") for arm in ("vanilla", "seal")
    ]
    outcomes = read_parquet(tmp_path / "results" / "transfer_outcomes.parquet").to_pylist()
    assert {(row["to"], row["round"]) for row in outcomes} == {
        (to, depth) for to in ("", "compliance") for depth in (0, 1)
    }


def test_what_is_finished_of_an_interrupted_run_is_told_and_written_but_never_over_more(tmp_path, capsys, monkeypatch):
    (tmp_path / "params.yaml").write_text(PARAMS)
    words = ["transfer", "--rounds", "1", "--to", "compliance", "--results", str(tmp_path / "results"), "--seeds"]
    measure, asked = transfer._transfer, []

    def interrupted(job, **more):
        asked.append(job)
        if len(asked) == 4:  # the last of two seeds
            raise KeyboardInterrupt
        return measure(job, **more)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(transfer, "_transfer", interrupted)
        command.run(_args(tmp_path, *words, "2"))
    assert "shop (home)" in capsys.readouterr().out
    table = tmp_path / "results" / "transfer.parquet"
    seeds = {(row["to"], row["arm"]): row["seeds"] for row in read_parquet(table).to_pylist()}
    assert seeds == {(to, arm): n for to in ("", "compliance") for arm, n in (("vanilla", 2), ("seal", 1))}

    command.run(_args(tmp_path, *words, "2"))
    whole = table.read_bytes()
    asked[:] = asked[:1]
    capsys.readouterr()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(transfer, "_transfer", interrupted)
        command.run(_args(tmp_path, *words, "2"))
    assert "shop (home)" in (said := capsys.readouterr().out) and "stays as it is" in said
    assert table.read_bytes() == whole


def test_nothing_finished_is_nothing_written(tmp_path, capsys, monkeypatch):
    (tmp_path / "params.yaml").write_text(PARAMS)
    monkeypatch.setattr(transfer, "_transfer", lambda job, **more: (_ for _ in ()).throw(KeyboardInterrupt))
    words = ["transfer", "--seeds", "1", "--rounds", "1", "--to", "compliance", "--results", str(tmp_path / "results")]
    with pytest.raises(KeyboardInterrupt):
        command.run(_args(tmp_path, *words))
    assert capsys.readouterr().out == "" and not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("transfer",),
        ("rises", "--to", "compliance"),
        ("transfer", "--to", "nowhere"),
        ("transfer", "--to", "shop"),  # home
        ("transfer", "--to", "compliance,shop"),
    ],
)
def test_a_destination_is_asked_for_where_it_belongs(tmp_path, words):
    (tmp_path / "params.yaml").write_text(PARAMS)
    with pytest.raises(ParamError, match="--to|nowhere"):
        command.run(_args(tmp_path, *words, "--seeds", "1", "--rounds", "1"))


def test_a_destination_that_nano_has_no_words_for_is_told_before_it_trains(tmp_path):
    (tmp_path / "params.yaml").write_text(PARAMS.replace("kind: scripted, variant: faulty, rate: 0.5", "kind: nano"))
    with pytest.raises(ParamError, match="nano in bfcl"):
        command.run(_args(tmp_path, "transfer", "--to", "bfcl", "--seeds", "1", "--rounds", "1"))
    assert not list(tmp_path.rglob("r0.json"))
    with pytest.raises(ParamError, match="nano in bfcl"):
        write_start({"kind": "nano"}, load_env("bfcl"), tmp_path / "policy")
    for name in ("shop", "compliance"):
        write_start({"kind": "nano"}, load_env(name), tmp_path / name)


@pytest.mark.slow
def test_a_policy_that_was_not_kept_is_trained_again_and_measures_the_same(tmp_path):
    change = {"collect": SMALL["collect"], "train": {"algorithm": "grpo", "steps": 2}, "evaluate": {"tasks": 4}}
    jobs, places = plan(_params("nano"), ["seal"], 1, 1, change=change), [place_of(FAULTY, "compliance")]
    found = run_transfer(jobs, tmp_path, places)
    home = run_jobs(jobs, tmp_path)
    shutil.rmtree(folder_of(jobs[0], tmp_path) / "state")
    for path in tmp_path.rglob("to-*.json"):
        path.unlink()
    assert run_transfer(jobs, tmp_path, places) == found and run_jobs(jobs, tmp_path) == home
