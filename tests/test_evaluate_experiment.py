"""Experiments: resumable to the byte, keyed by their parameters, summarised with intervals over seeds."""

import argparse
import json
import math
import shutil
from dataclasses import replace
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.commands import experiment as command
from seal.core.errors import ArtifactError, ParamError
from seal.experiment import starts
from seal.experiment.arms import ARMS, EXPERIMENTS
from seal.experiment.jobs import plan
from seal.experiment.runs import records, run_job, run_jobs
from seal.experiment.starts import policy_of_start
from seal.experiment.summary import summarise, whole
from seal.pipeline import phases
from seal.policy.scripted import FaultyPolicy
from seal.policy.start import write_start
from seal.report.experiments import load_results
from seal.settings.params import parse_params
from seal.settings.play import EvaluateParams
from seal.settings.rounds import Defaults, Round
from seal.settings.typed import Absent, plain, read
from seal.store.parquet import read_parquet, write_parquet
from seal.train import on_policy

SMALL = {"collect": {"tasks": 3, "group_size": 4, "evolved": 2}, "train": {"algorithm": "none"}}
CHEAP = {"evaluate": {"tasks": 6}}


def _params(kind="scripted", **policy):
    start = {"env": "shop", "recipe": 1, "policy": {"kind": kind, **policy}, "evaluate": plain(EvaluateParams())}
    return parse_params(
        {
            "run": {"seed": 3, "threads": 1},
            "envs": {"shop": {"seed": 0, "train": 3, "dev": 2, "test": 3}},
            "starts": {"r0": start},
            "defaults": {"collect": SMALL["collect"], "train": SMALL["train"], **CHEAP},
        }
    )


FAULTY = _params(variant="faulty", rate=0.5)


def _files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_run_that_was_killed_goes_on_where_it_was_and_ends_the_same(tmp_path, monkeypatch):
    jobs = plan(FAULTY, "rises", seeds=1, rounds=3)
    run_job(jobs[0], tmp_path / "whole")
    real, played = phases.run_round, []

    def dies_in_r3(state, *rest):
        played.append(state.key.id)
        if played.count("r3") == 1 and state.key.id == "r3":
            raise KeyboardInterrupt
        return real(state, *rest)

    monkeypatch.setattr(phases, "run_round", dies_in_r3)
    with pytest.raises(KeyboardInterrupt):
        run_job(jobs[0], tmp_path / "killed")
    run_job(jobs[0], tmp_path / "killed")
    assert played == ["r1", "r2", "r3", "r3"]
    run_job(jobs[0], tmp_path / "killed")
    assert played == ["r1", "r2", "r3", "r3"]
    assert _files(tmp_path / "whole") == _files(tmp_path / "killed")


def test_a_killed_round_does_not_play_again_what_it_played(tmp_path, monkeypatch):
    (job,) = plan(FAULTY, "rises", seeds=1, rounds=1)
    run_job(job, tmp_path / "whole")
    asked, real = [], FaultyPolicy.act

    def act(self, observations, *args):
        asked.append(len(observations))
        return real(self, observations, *args)

    monkeypatch.setattr(FaultyPolicy, "act", act)
    for phase in ("profile", "metrics"):  # after collect, after evaluate
        _killed_at(phase, job, tmp_path / "killed", monkeypatch)
        assert asked
        asked.clear()
    run_job(job, tmp_path / "killed")
    assert not asked and not (tmp_path / "killed" / "seal" / "s3" / "begun").exists()
    assert _files(tmp_path / "whole") == _files(tmp_path / "killed")


@pytest.mark.slow
def test_a_round_killed_in_any_phase_ends_with_the_same_bytes(tmp_path, monkeypatch):
    (job,) = plan(_params("nano"), "rises", 1, 1, change={"train": {"algorithm": "grpo", "steps": 3}})
    run_job(job, tmp_path / "whole")
    trained = []

    def dies_in_its_second_step(*args, **more):
        trained.append(1)
        if len(trained) == 2:
            raise KeyboardInterrupt
        return played(*args, **more)

    played = on_policy.judge
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(on_policy, "judge", dies_in_its_second_step)
        run_job(job, tmp_path / "killed")
    for phase in ("profile", "evaluate_policy", "metrics"):
        _killed_at(phase, job, tmp_path / "killed", monkeypatch)
    run_job(job, tmp_path / "killed")
    assert _files(tmp_path / "whole") == _files(tmp_path / "killed")


def _killed_at(phase, job, out, monkeypatch):
    def dies(*args, **more):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(phases, phase, dies)
        run_job(job, out)


def test_a_finished_run_goes_on_with_more_rounds_where_it_ended(tmp_path, monkeypatch):
    real, played = phases.run_round, []
    monkeypatch.setattr(phases, "run_round", lambda state, *rest: played.append(state.key.id) or real(state, *rest))
    for n in (1, 3):
        run_job(plan(FAULTY, "rises", 1, n)[0], tmp_path / "longer")
    assert played == ["r1", "r2", "r3"]
    run_job(plan(FAULTY, "rises", 1, 3)[0], tmp_path / "whole")
    assert _files(tmp_path / "whole") == _files(tmp_path / "longer")


def test_arms_of_a_seed_begin_with_one_start_and_a_killed_one_goes_on(tmp_path, monkeypatch):
    made, played, real = [], [], starts.evaluate_start
    monkeypatch.setattr(starts, "write_start", lambda *args, **of: made.append(1) or write_start(*args, **of))

    def dies_once(*args, **more):
        played.append(1)
        if len(played) == 1:
            raise KeyboardInterrupt
        return real(*args, **more)

    monkeypatch.setattr(starts, "evaluate_start", dies_once)
    jobs = plan(FAULTY, "margin", seeds=2, rounds=1)
    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, tmp_path / "killed")
    run_jobs(jobs, tmp_path / "killed")
    assert len(made) == 2 and len(played) == 1 + 2  # seeds; not once for each of three arms
    run_jobs(plan(FAULTY, "margin", seeds=1, rounds=1, change={"evaluate": {"tasks": 3}}), tmp_path / "killed")
    assert len(made) == 2 and len(played) == 1 + 2 + 1  # another evaluation of the same start
    starts_of = [jobs[i] for i in (0, 1)]
    assert {r["metrics"]["policy_hash"] for r in records(starts_of, tmp_path / "killed") if not r["depth"]} == {
        policy_of_start(jobs[0], tmp_path / "killed").hash
    }


@pytest.mark.slow
def test_several_processes_make_one_start_of_weights_for_all(tmp_path):
    jobs = plan(_params("nano"), "margin", seeds=1, rounds=1)
    run_jobs(jobs, tmp_path, workers=3)
    for made in ("policy", "start"):
        assert len(list((tmp_path / "starts").glob(f"*/{made}"))) == 1
    policies = [_files(tmp_path / job.arm / "s3" / "state" / "policy") for job in jobs]
    assert policies[0] and policies[0] == policies[1] == policies[2]  # training is off


def test_other_parameters_are_another_run_and_more_rounds_are_not(tmp_path):
    short, long = (plan(FAULTY, "rises", 1, n)[0] for n in (1, 2))
    assert short.digest(1) == long.digest(1)
    changed = plan(FAULTY, "rises", 1, 1, change={"collect": {"tasks": 2}})[0]
    assert changed.digest(0) == short.digest(0) and changed.digest(1) != short.digest(1)
    other = plan(FAULTY, "rises", 1, 1, env={"told": 0.5})[0]
    assert other.digest(0) != short.digest(0) and other.env_options["told"] == 0.5
    assert plan(FAULTY, "rises", 1, 1, env={"told": 0.0})[0].digest(1) == short.digest(1)  # as before there was one
    run_job(short, tmp_path)
    assert [record["depth"] for record in records([long], tmp_path)] == [0, 1]
    assert [record["depth"] for record in records([changed], tmp_path)] == [0]


LATER = [
    (section, name, mark.value)
    for section in Defaults.model_fields
    for name, field in Round.model_fields[section].annotation.model_fields.items()
    for mark in field.metadata
    if isinstance(mark, Absent)
]


@pytest.mark.parametrize(("section", "name", "absent"), LATER)
def test_a_parameter_that_was_not_there_yet_leaves_the_digest_as_it_was(section, name, absent):
    (job,) = plan(FAULTY, "rises", 1, 1)
    entry = job.rounds[0]
    with_it = replace(job, rounds=({**entry, section: {**entry[section], name: plain(absent)}},))
    assert replace(job, rounds=({**entry, section: without(entry[section], name)},)).digest(1) == with_it.digest(1)


def without(entry, name):
    return {key: value for key, value in entry.items() if key != name}


def test_open_loop_stops_evolving_after_its_first_round_and_no_other_arm_changes():
    for arm in ARMS:
        (job,) = plan(_params(), [arm], 1, 3)
        kinds = [entry["evolve"]["interface"] for entry in job.rounds]
        assert kinds == (["evolved", "kept", "kept"] if arm == "open_loop" else kinds[:1] * 3)
        emas = [entry["train"]["ema"] for entry in job.rounds]
        assert emas == (emas[:1] + [0.0, 0.0] if arm == "open_loop" else emas[:1] * 3)


def test_the_arm_paper_weighs_by_the_formula_of_the_paper():
    (job,) = plan(_params(), ["paper"], 1, 1)
    train, collect = job.rounds[0]["train"], job.rounds[0]["collect"]
    told = {"weights": "trajectory", "alpha": 0.0, "normalise": False, "beta": 0.001, "loss": "dapo", "negative": 1.0}
    assert {name: train[name] for name in told} == told
    assert (collect["evolved"], collect["item_dropout"]) == (collect["group_size"], 0.0)


def test_arms_are_complete_round_entries_that_differ_where_they_say():
    params = _params()
    jobs = {job.arm: job for job in plan(params, "arms", 1, 1)}
    assert tuple(jobs) == EXPERIMENTS["arms"]
    for job in jobs.values():
        assert read(Round, job.rounds[0], "round", complete=True).collect.group_size == 4
    assert jobs["vanilla"].rounds[0]["collect"]["evolved"] == 0
    assert jobs["paper"].rounds[0]["evolve"]["interface"] == "published"
    assert jobs["stripped"].rounds[0]["collect"]["evolved"] == 4
    assert all(len(set(arms)) == len(arms) and set(arms) <= ARMS.keys() for arms in EXPERIMENTS.values())


@pytest.mark.parametrize("wrong", [{"wanted": "nope"}, {"wanted": ["nope"]}, {"start": "nope"}, {"start": ""}])
def test_unknown_names_are_parameter_errors(wrong):
    with pytest.raises(ParamError, match="nope|start: empty"):
        plan(**{"params": FAULTY, "wanted": "rises", "seeds": 1, "rounds": 1, **wrong})


def test_seeds_differ_and_everything_is_counted(tmp_path):
    jobs = plan(FAULTY, "margin", seeds=2, rounds=1)
    found = run_jobs(jobs, tmp_path)
    assert [(r["arm"], r["seed"], r["depth"]) for r in found] == [
        (arm, seed, depth) for seed in (3, 4) for arm in EXPERIMENTS["margin"] for depth in (0, 1)
    ]
    assert all(r["metrics"]["total"]["rollouts"] == 12 * r["depth"] for r in found)
    assert found[0]["outcomes"] != found[2 * len(EXPERIMENTS["margin"])]["outcomes"]
    scenarios = {row[2]: row[2].rsplit("-", 1)[0] for r in found for row in r["outcomes"]}
    rows = summarise(found, scenarios)
    assert [(row["arm"], row["depth"], row["seeds"]) for row in rows] == [
        (arm, depth, 2) for arm in EXPERIMENTS["margin"] for depth in (0, 1)
    ]
    assert rows[0]["gain"] is rows[0]["margin"] is None  # of the start and itself
    assert rows[2]["strict"] == rows[0]["strict"]  # arms share the start


def _record(arm, seed, depth, solved):
    outcomes = [["test", "off", f"t{i}", 0, i < solved, 0.5 + 0.5 * (i < solved)] for i in range(20)]
    total = {"rollouts": 100 * depth, "tokens": 1000 * depth, "updates": depth}
    return {"arm": arm, "seed": seed, "depth": depth, "metrics": {"total": total}, "outcomes": outcomes}


def test_a_gain_in_every_seed_is_a_gain_and_a_gain_in_one_is_not():
    scenarios = {f"t{i}": f"s{i}" for i in range(20)}
    steady = [_record("a", s, d, 6 + 8 * d) for s in range(7) for d in (0, 1)]
    lucky = [_record("b", s, d, 6 + 8 * d * (s == 0)) for s in range(7) for d in (0, 1)]
    rows = {(row["arm"], row["depth"]): row for row in summarise(steady + lucky, scenarios)}
    assert rows["a", 1]["gain"] == pytest.approx(0.4) and rows["a", 1]["gain_low"] > 0.1
    assert rows["b", 1]["gain"] == pytest.approx(0.4 / 7, abs=1e-5) and rows["b", 1]["gain_low"] <= 0
    assert rows["b", 1]["margin"] < 0 and rows["b", 1]["margin_high"] < 0
    assert rows["a", 1]["progress"] == pytest.approx(0.5 + 0.5 * 14 / 20)  # of turns: half as much as of tasks
    for name in ("gain", "margin"):
        assert rows["b", 1][f"progress_{name}"] == pytest.approx(rows["b", 1][name] / 2, abs=1e-5)
    assert rows["a", 1]["on"] is None and rows["a", 1]["rollouts"] == 100


@given(st.dictionaries(st.tuples(st.sampled_from("ab"), st.integers(0, 6)), st.integers(0, 4), min_size=1))
def test_the_rows_of_an_arm_are_of_the_same_seeds(last):
    runs = {(arm, seed, depth) for (arm, seed), longest in last.items() for depth in range(longest + 1)}
    kept = whole(runs)
    assert kept <= runs and {arm for arm, _, _ in kept} == {arm for arm, _, _ in runs}
    for arm, longest in {arm: max(d for a, _, d in kept if a == arm) for arm, _, _ in kept}.items():
        seeds = [{s for a, s, d in kept if (a, d) == (arm, depth)} for depth in range(longest + 1)]
        assert seeds[0] and all(of == seeds[0] for of in seeds)
    if len({(arm, longest) for (arm, _), longest in last.items()}) == len({arm for arm, _ in last}):
        assert kept == runs  # nothing was interrupted


def test_of_an_interrupted_arm_most_is_kept():
    lines = dict.fromkeys(range(7), 2)
    for last, told in (
        ({**lines, 0: 3}, {(seed, 2) for seed in range(7)}),  # a further round was begun
        ({**lines, 7: 1}, {(seed, 2) for seed in range(7)}),  # a further seed was begun
        ({0: 5, 1: 0}, {(0, 5)}),
    ):
        kept = whole({("a", seed, depth) for seed, longest in last.items() for depth in range(longest + 1)})
        assert {(s, max(d for _, other, d in kept if other == s)) for _, s, _ in kept} == told


PARAMS = """
run: {seed: 3, threads: 1}
envs:
  shop: {seed: 0, train: 3, dev: 2, test: 3}
starts:
  r0:
    env: shop
    recipe: 1
    policy: {kind: scripted, variant: faulty, rate: 0.5}
    evaluate:
      {split: test, tasks: 0, trials: 1, temperature: 0.0, measure_on: true, max_action_tokens: 24, context: 512}
defaults:
  collect: {tasks: 3, group_size: 4, evolved: 2}
  evaluate: {tasks: 6}
"""


def _args(root, *words):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args([*words, "--set", "train.algorithm=none", "--root", str(root)])


def test_the_command_prints_a_table_and_keeps_results(tmp_path, capsys):
    (tmp_path / "params.yaml").write_text(PARAMS)
    args = _args(tmp_path, "margin", "--seeds", "2", "--rounds", "1", "--results", str(tmp_path / "results"))
    assert command.run(args) == 0
    out = capsys.readouterr().out
    assert [line.split()[:2] for line in out.splitlines()[2:5]] == [[arm, "2"] for arm in EXPERIMENTS["margin"]]
    before = _files(tmp_path / "results")
    picture = ElementTree.parse(tmp_path / "results" / "curves.svg").getroot()
    assert picture.tag == "{http://www.w3.org/2000/svg}svg" and "seal" in "".join(picture.itertext())
    outcomes = read_parquet(tmp_path / "results" / "outcomes.parquet")
    assert outcomes.num_rows > 40 and set(outcomes["arm"].to_pylist()) == set(EXPERIMENTS["margin"])
    assert command.run(args) == 0 and capsys.readouterr().out == out
    assert _files(tmp_path / "results") == before
    with pytest.raises(ParamError, match="--seeds"):
        command.run(_args(tmp_path, "rises", "--seeds", "0"))


def test_runs_that_the_results_hold_are_not_run_again(tmp_path, monkeypatch):
    (tmp_path / "params.yaml").write_text(PARAMS)
    words = ["margin", "--seeds", "2", "--rounds", "2", "--results", str(tmp_path / "results")]
    command.run(_args(tmp_path, *words))
    kept = tmp_path / ".seal" / "experiments" / "r0"
    records = {name: data for name, data in _files(kept).items() if name.match("*/s*/r*.json")}
    results = _files(tmp_path / "results")
    shutil.rmtree(tmp_path / ".seal")
    with monkeypatch.context() as never:
        never.setattr(starts, "evaluate_start", None)
        command.run(_args(tmp_path, *words))
    assert _files(kept) == records and _files(tmp_path / "results") == results
    shutil.rmtree(tmp_path / ".seal")
    command.run(_args(tmp_path, *words[:-2], "--set", "collect.tasks=2"))  # what lies there is of other parameters
    with monkeypatch.context() as never:
        never.setattr(starts, "evaluate_start", None)
        command.run(_args(tmp_path, *words))
    assert _files(tmp_path / "results") == results


OTHERS = ["--seeds 1", "--rounds 1", "--arms seal", "--set collect.tasks=2", "--preset other", "--env told=0.5"]


@pytest.mark.parametrize("change", OTHERS)
def test_results_that_a_command_would_lose_are_not_overwritten(tmp_path, monkeypatch, change):
    (tmp_path / "params.yaml").write_text(PARAMS)
    (tmp_path / "presets").mkdir()
    preset = "envs: {compliance: {train: 3, test: 3}}\nstarts: {c0: {env: compliance, policy: {kind: scripted}}}\n"
    (tmp_path / "presets" / "other.yaml").write_text(preset)
    words = ["margin", "--seeds", "2", "--rounds", "2", "--results", str(tmp_path / "results")]
    command.run(_args(tmp_path, *words))
    results = _files(tmp_path / "results")
    monkeypatch.setattr(starts, "evaluate_start", None)
    with pytest.raises(ParamError, match="would be lost"):
        command.run(_args(tmp_path, *words, *change.split()))
    assert _files(tmp_path / "results") == results


def test_damaged_results_are_one_error_and_nothing_is_written(tmp_path, monkeypatch):
    (tmp_path / "params.yaml").write_text(PARAMS)
    words = ["rises", "--seeds", "1", "--rounds", "1", "--results", str(tmp_path / "results")]
    command.run(_args(tmp_path, *words))
    shutil.rmtree(tmp_path / ".seal")
    monkeypatch.setattr(starts, "evaluate_start", None)
    for name, damaged, says in (
        ("outcomes", lambda table: table.slice(3), "outcomes of seal 3 0"),
        ("runs", lambda table: table.drop_columns(["metrics"]), "no column metrics"),
        ("labels", lambda table: table.drop_columns(["pull"]), "no column pull"),
        ("labels", lambda table: table.cast(_texts(table.schema)), "column seed is string, not int64"),
        ("runs", lambda table: _metrics(table, "{"), "metrics: "),
        ("runs", lambda table: _metrics(table, "[]"), "metrics is no object"),
        ("runs", lambda table: _metrics(table, '{"strict": {}}'), "metrics has no 'total'"),
        ("runs", None, "runs.parquet"),
        ("outcomes", None, "outcomes.parquet"),
        ("outcomes", lambda table: _filled(table, "success", True), "seal 3 0: its outcomes do not make"),
        ("outcomes", lambda table: _filled(table, "progress", math.nan), "seal 3 0: a progress of nan"),
        ("outcomes", lambda table: _filled(table, "progress", None), "seal 3 0: one of its outcomes lacks a value"),
        ("outcomes", lambda table: _filled(table, "task_id", "nope"), "seal 3 0: .* of its outcomes stand there twice"),
        ("outcomes", lambda table: _first(table, "task_id", "nope"), "seal 3 0: there is no task nope"),
        ("labels", lambda table: table.slice(1), "seal 3 0: labels.parquet has other rates"),
    ):
        path = tmp_path / "results" / f"{name}.parquet"
        whole = path.read_bytes()
        write_parquet(path, damaged(read_parquet(path))) if damaged else path.unlink()
        before = _files(tmp_path / "results")
        with pytest.raises(ArtifactError, match=says) as told:
            command.run(_args(tmp_path, *words))
        assert f"git checkout -- {tmp_path / 'results'}" in told.value.remedy and "dvc" not in told.value.remedy
        assert _files(tmp_path / "results") == before
        path.write_bytes(whole)
    (tmp_path / "file").touch()
    with pytest.raises(ParamError, match="name a folder"):
        command.run(_args(tmp_path, *words[:-1], str(tmp_path / "file")))


def test_results_that_contradict_what_was_played_are_told_until_one_of_them_is_gone(tmp_path, monkeypatch):
    (tmp_path / "params.yaml").write_text(PARAMS)
    words = ["rises", "--seeds", "1", "--rounds", "1", "--results", str(tmp_path / "results")]
    command.run(_args(tmp_path, *words))
    results, path = _files(tmp_path / "results"), tmp_path / "results" / "outcomes.parquet"
    table, whole = read_parquet(path), path.read_bytes()
    write_parquet(path, _filled(table, "progress", 0.25))  # each table may well be of some run
    monkeypatch.setattr(starts, "evaluate_start", None)
    with pytest.raises(ArtifactError, match="r0.json have other outcomes of the same run"):
        command.run(_args(tmp_path, *words))
    shutil.rmtree(tmp_path / ".seal")
    command.run(_args(tmp_path, *words))  # nothing tells otherwise
    path.write_bytes(whole)
    with pytest.raises(ArtifactError, match="r0.json have other outcomes of the same run"):
        command.run(_args(tmp_path, *words))
    shutil.rmtree(tmp_path / ".seal")
    command.run(_args(tmp_path, *words))
    assert _files(tmp_path / "results") == results


def _filled(table, name, value):
    at = table.column_names.index(name)
    return table.set_column(at, name, pa.array([value] * table.num_rows, table.schema.field(name).type))


def _first(table, name, value):
    values = [value, *table.column(name).to_pylist()[1:]]
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def _texts(schema):
    return pa.schema([field.with_type(pa.string()) if field.name == "seed" else field for field in schema])


def _metrics(table, text):
    return table.set_column(table.column_names.index("metrics"), "metrics", pa.array([text] * table.num_rows))


def test_names_are_read_once_each_and_without_their_spaces(tmp_path, capsys):
    (tmp_path / "params.yaml").write_text(PARAMS)
    command.run(_args(tmp_path, "margin", "--seeds", "1", "--rounds", "1", "--arms", " seal,seal ,vanilla"))
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()[2:4]] == [["seal", "1"], ["vanilla", "1"]]
    for none in (",", ""):
        with pytest.raises(ParamError, match="--arms"):
            command.run(_args(tmp_path, "margin", "--arms", none))
    for wrong in ("collect=3", "collect.group_size=abc"):
        with pytest.raises(ParamError, match="collect"):
            command.run(_args(tmp_path, "margin", "--set", wrong))


def test_what_is_finished_is_told_when_the_rest_is_interrupted(tmp_path, monkeypatch, capsys):
    (tmp_path / "params.yaml").write_text(PARAMS)
    real = phases.run_round

    def interrupted(state, *rest):
        if state.key.run_seed == 4:
            raise KeyboardInterrupt
        return real(state, *rest)

    monkeypatch.setattr(phases, "run_round", interrupted)
    args = _args(tmp_path, "margin", "--seeds", "2", "--rounds", "1", "--results", str(tmp_path / "results"))
    with pytest.raises(KeyboardInterrupt):
        command.run(args)
    said = capsys.readouterr()
    assert "seal" in said.out and "note: 1 rounds of interrupted lines are not in the tables" in said.err
    (found,) = load_results(tmp_path)
    assert {(row["arm"], row["seeds"]) for row in found.summary} == {(arm, 1) for arm in EXPERIMENTS["margin"]}
    runs = read_parquet(tmp_path / "results" / "runs.parquet").to_pylist()
    assert {(run["arm"], run["seed"], run["round"]) for run in runs} == {
        *((arm, 3, depth) for arm in EXPERIMENTS["margin"] for depth in (0, 1)), ("vanilla", 4, 0)
    }  # fmt: skip


def test_a_preset_is_what_runs_and_params_stay_as_they_are(tmp_path, capsys):
    (tmp_path / "params.yaml").write_text(PARAMS)
    (tmp_path / "presets").mkdir()
    preset = "envs: {compliance: {train: 3, test: 3}}\nstarts: {c0: {env: compliance, policy: {kind: scripted}}}\n"
    (tmp_path / "presets" / "other.yaml").write_text(preset + "defaults: {collect: {tasks: 2}}\n")
    words = ["rises", "--seeds", "1", "--rounds", "1", "--preset", "other", "--results", str(tmp_path / "results")]
    assert command.run(_args(tmp_path, *words)) == 0
    assert (tmp_path / "params.yaml").read_text() == PARAMS
    (run,) = (r for r in read_parquet(tmp_path / "results" / "runs.parquet").to_pylist() if r["round"] == 1)
    assert run["rollouts"] == 8 and json.loads(run["metrics"])["env"] == "compliance"
    with pytest.raises(ParamError, match="other"):
        command.run(_args(tmp_path, "rises", "--preset", "none"))


@pytest.mark.slow
def test_arms_train_the_reader_and_two_workers_do_the_same(tmp_path):
    of_start = {"reference": "start", "beta": 0.01}
    change = {"train": {"algorithm": "grpo", "steps": 2, **of_start}, "evaluate": {"tasks": 4}}
    jobs = plan(_params("nano"), "margin", seeds=1, rounds=1, change=change)
    found = run_jobs(jobs, tmp_path / "one")
    assert [r["metrics"]["total"] for r in found][1]["updates"] == 4
    assert all(r["metrics"]["total"]["tokens"] > 0 for r in found if r["depth"])
    run_jobs(jobs, tmp_path / "two", workers=2)
    assert _files(tmp_path / "one") == _files(tmp_path / "two")
