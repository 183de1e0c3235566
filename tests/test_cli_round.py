"""`seal round`: a tree in params.yaml from the command line."""

import json

import pytest

from seal.cli import main
from seal.experiment.arms import ARMS, PLAIN_RATE
from seal.experiment.jobs import plan
from seal.settings.params import load_params
from seal.settings.typed import plain

PARAMS = """run: {seed: 0, threads: 1}
envs: {shop: {}}
starts:
  r0:
    env: shop
    recipe: 1
    policy: {kind: scripted}
    evaluate: {split: test, tasks: 3, trials: 1, temperature: 0.0, measure_on: true, max_action_tokens: 24, context: 512}
rounds:
"""  # noqa: E501


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    (tmp_path / "params.yaml").write_text(PARAMS)
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rounds(workspace) -> dict:
    return load_params(workspace / "params.yaml").rounds


def test_new_goes_on_from_the_last_round(workspace):
    assert main(["round", "new"]) == 0
    assert main(["round", "new", "--set", "train.lr=1e-4"]) == 0
    assert {name: entry.parent for name, entry in rounds(workspace).items()} == {"r1": "r0", "r2": "r1"}
    assert rounds(workspace)["r2"].train.lr == 1e-4


def test_a_branch_differs_from_its_sibling_only_where_said(workspace):
    main(["round", "new", "r1", "--set", "train.steps=1"])
    main(["round", "new", "r2", "--set", "train.steps=7"])
    assert main(["round", "branch", "b2", "--from", "r1", "--set", "train.lr=0.5"]) == 0
    branch, sibling = rounds(workspace)["b2"], rounds(workspace)["r2"]
    assert (branch.parent, branch.train.steps, branch.train.lr) == ("r1", 7, 0.5)
    assert branch.collect == sibling.collect


def test_a_round_is_as_its_parent_and_the_first_of_a_line_as_the_defaults(workspace):
    main(["round", "new", "r1", "--set", "train.steps=7", "--set", "collect.context=99"])
    assert main(["round", "new", "r2", "--set", "train.lr=0.5"]) == 0
    assert main(["round", "branch", "b3", "--from", "r2"]) == 0
    assert main(["round", "new", "s1", "--parent", "r0"]) == 0
    found = {name: (e.train.steps, e.collect.context, e.train.lr == 0.5) for name, e in rounds(workspace).items()}
    assert found["r1"][:2] == (7, 99) and found["r2"] == found["b3"] == (7, 99, True)
    assert found["s1"][0] != 7 and found["s1"][1] != 99


def changed(workspace, name, parent, *words):
    """Where a new child of `parent` that plays as an arm differs from the defaults."""
    assert main(["round", "new", f"{name}-plain", "--parent", "r0"]) == 0
    assert main(["round", "new", name, "--parent", parent, *words]) == 0
    before, found = (plain(rounds(workspace)[key]) for key in (f"{name}-plain", name))
    places = [(section, key) for section in ("collect", "evolve", "train") for key in found[section]]
    return {f"{s}.{key}": found[s][key] for s, key in places if found[s][key] != before[s][key]}


def test_a_round_plays_as_an_arm(workspace):
    told = {"collect.evolved": 0, "evolve.interface": "none", "train.condition": "as_collected"}
    told |= {"train.weights": "none", "train.drop_negative": False, "train.negative": 1.0, "train.epsilon_high": 0.0}
    told |= {"train.rehearse": 0.0, "train.replay": 0, "train.loss": "dapo"}
    assert told.items() <= changed(workspace, "v1", "r0", "--arm", "vanilla").items()


def test_an_arm_knows_the_depth_of_its_round_the_groups_it_plays_and_the_policy_of_its_start(workspace):
    for name, parent, kept in (("o1", "r0", None), ("o2", "o1", "kept"), ("o3", "o2", "kept")):
        found = changed(workspace, name, parent, "--arm", "open_loop", "--set", "collect.group_size=6")
        assert (found.get("evolve.interface"), rounds(workspace)[name].collect.evolved) == (kept, 3)
    nano = PARAMS.replace("{kind: scripted}", "{kind: nano}") + "defaults: {train: {lr: 0.5}}\n"
    (workspace / "params.yaml").write_text(nano)
    assert changed(workspace, "v1", "r0", "--arm", "vanilla")["train.lr"] == PLAIN_RATE["nano"]


@pytest.mark.parametrize("name", ["", "x" * 65, "R", "a/b"])
@pytest.mark.parametrize("words", [("new",), ("branch", "--from", "r0")])
def test_an_id_that_is_none_is_one_error_and_adds_nothing(workspace, capsys, name, words):
    assert main(["round", *words, name]) == 2
    said = capsys.readouterr().err
    assert (name or "empty") in said and "64 at most" in said and (workspace / "params.yaml").read_text() == PARAMS


def test_an_empty_parent_is_no_round(workspace, capsys):
    assert main(["round", "new", "--parent", ""]) == 5
    assert "known rounds: r0" in capsys.readouterr().err and (workspace / "params.yaml").read_text() == PARAMS


@pytest.mark.parametrize("arm", ARMS)
def test_every_arm_is_a_round_that_experiments_would_play(workspace, arm):
    for depth, (name, parent) in enumerate((("a1", "r0"), ("a2", "a1"))):
        assert main(["round", "new", name, "--parent", parent, "--arm", arm, "--set", "train.steps=3"]) == 0
        (job,) = plan(load_params(workspace / "params.yaml"), [arm], 1, 2, "r0", {"train": {"steps": 3}})
        assert {**plain(rounds(workspace)[name]), "parent": "r0"} == job.rounds[depth]


def test_settings_lie_over_what_an_arm_says_and_a_branch_over_its_sibling(workspace):
    assert changed(workspace, "r1", "r0", "--arm", "vanilla", "--set", "train.loss=grpo")["train.loss"] == "grpo"
    main(["round", "new", "b0", "--set", "train.steps=7", "--set", "collect.group_size=4"])
    main(["round", "new", "b1", "--parent", "b0", "--set", "train.steps=7", "--set", "collect.group_size=4"])
    assert main(["round", "branch", "b2", "--from", "b0", "--arm", "seal"]) == 0
    entry = rounds(workspace)["b2"]
    assert (entry.parent, entry.train.steps, entry.collect.group_size, entry.collect.evolved) == ("b0", 7, 4, 2)


def test_list_shows_the_tree_with_scores(workspace, capsys):
    main(["round", "new"])
    folder = workspace / "data" / "rounds" / "r1"
    folder.mkdir(parents=True)
    scores = {
        "strict": {"mean": 0.25, "low": 0.1, "high": 0.4},
        "gain": {"parent": {"mean": 0.05}},
        "interface": {"active": 3},
    }
    (folder / "metrics.json").write_text(json.dumps(scores))
    capsys.readouterr()
    assert main(["round", "list"]) == 0
    start, first = capsys.readouterr().out.splitlines()
    assert start.split() == ["r0", "not", "run"]
    assert first.startswith("  r1")
    assert "25.0 [10.0, 40.0]" in first
    assert "gain +5.0" in first
    assert "cues 3" in first


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["round", "new", "--parent", "r7"], 5),
        (["round", "branch", "b1", "--from", "r7"], 5),
        (["round", "new", "r0"], 2),
        (["round", "new", "X"], 2),
        (["round", "new", "--set", "train.lr=-1"], 2),
        (["round", "new", "--arm", "vanila"], 2),
        (["round", "new", "--arm", "vanilla", "--parent", "r7"], 5),
        (["replay", "r7"], 5),
        (["replay", "r0"], 5),
        (["run", "--preset", "none-such"], 2),
    ],
)
def test_mistakes_are_one_message_and_an_exit_code(workspace, capsys, words, code):
    assert main(words) == code
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("->") == 1
    assert (workspace / "params.yaml").read_text() == PARAMS


SETTINGS = {  # what is typed -> what is said of it
    "nope.x=1": "nope: unknown key",
    "train.lrr=1": "did you mean lr",
    "train..lr=1": "unknown key",
    "train.lr=x": "type float",
    "train=3": "a mapping",
    "train={lr: x}": "train.lr: write a value of type float",
    "train.clip=[1]": "list of 2",
    "train.clip=[1,a]": "type float",
    "train.clip=[3,1]": "low <= high",
    "train.lr={": "as YAML does",
    "train.lr=2001-99-99": "as YAML does",
    "collect.evolved=99": "at most collect.group_size",
    "collect.context=16": "an output and what it answers",
    "evaluate.context=24": "an output and what it answers",
    "train={algorithm: grpo, minibatches: 100000}": "train.minibatches: at most the rollouts of a step",
    "diagnose.priority=[a]": "an order of",
    "train.utility.nope=1": "use labels",
    "evolve.rewrite.url=foo": "http://",
    "parent=r0": "come from the lineage",
    "env.x=1": "come from the lineage",
    "train.lr": "key=value",
    "=1": "key=value",
}


@pytest.mark.parametrize("command", [("round", "new"), ("experiment", "rises", "--arms", "vanilla")])
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_wrong_setting_is_named_as_it_was_typed(workspace, capsys, command, setting):
    """Before anyone plays. What an arm sets itself, --set does not reach."""
    if command[0] == "experiment" and setting == "collect.evolved=99":
        return
    assert main([*command, "--set", "train.algorithm=none", "--set", setting]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: --set: {setting}\n  -> ") and SETTINGS[setting] in said
    assert (workspace / "params.yaml").read_text() == PARAMS and not (workspace / ".seal").exists()


@pytest.mark.parametrize("text", ["{}", "", "run:\n", "run: {threads: 1}\n"])
@pytest.mark.parametrize("preset", [(), ("--preset", "p.yaml")])
def test_what_dvc_asks_params_for_is_missed_before_anything_is_written(workspace, capsys, text, preset):
    (workspace / "p.yaml").write_text("envs: {shop: {}}\nrounds: {r1: {parent: r0}}\n")
    (workspace / "params.yaml").write_text(text)
    before = sorted(workspace.iterdir())
    assert main(["run", *preset]) == 2
    said = capsys.readouterr().err
    assert "run.seed: missing" in said
    assert (workspace / "params.yaml").read_text() == text and sorted(workspace.iterdir()) == before


@pytest.mark.parametrize("preset", ["", "none", "p.yaml"])
def test_a_preset_without_rounds_runs_nothing(workspace, capsys, preset):
    (workspace / "p.yaml").write_text("defaults: {nope: 1}\n")
    assert main(["run", "--preset", preset]) == 2
    assert capsys.readouterr().err.startswith("error: --preset: ")


@pytest.mark.parametrize("command", [("run",), ("experiment", "rises")])
@pytest.mark.parametrize("preset", ["/nope.yaml", "no/such.yml", "folder.yaml", "nope"])
def test_a_preset_that_is_a_path_of_no_file_is_told_so(workspace, capsys, command, preset):
    (workspace / "folder.yaml").mkdir()
    assert main([*command, "--preset", preset]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"error: --preset: {preset}\n") and "known presets: none" in said
    assert ("there is no such file" in said) is (preset != "nope")


def test_a_setting_beside_an_arm_is_named_as_it_was_typed(workspace, capsys):
    assert main(["round", "new", "r4", "--parent", "r0", "--arm", "paper", "--set", "collect.group_size=1"]) == 2
    assert capsys.readouterr().err.startswith("error: --set: collect.group_size=1\n")


@pytest.mark.parametrize(
    "words",
    [("run",), ("run", "--rounds", "9"), ("experiment", "rises"), ("experiment", "parts", "--arms", "sft_static")],
)
def test_what_cannot_be_trained_is_told_before_anyone_plays(workspace, capsys, words):
    main(["round", "new", "r1"])
    capsys.readouterr()
    assert main([*words]) == 2
    assert "train.algorithm" in (said := capsys.readouterr()).err and "has no weights" in said.err
    assert said.out == "" and {path.name for path in workspace.iterdir()} == {"params.yaml", "dvc.yaml"}


def test_a_receiver_that_is_no_url_is_told_before_anyone_plays(workspace, capsys):
    main(["round", "new", "r1", "--set", "train.algorithm=none"])
    assert main(["run", "--otel", "foo"]) == 2
    assert "OTLP endpoint: foo" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["[]", "3", '{"strict": "x"}', '{"strict": {"mean": null}}', "{", "{}"])
def test_metrics_of_another_shape_are_one_clear_error(workspace, capsys, text):
    main(["round", "new"])
    (folder := workspace / "data" / "rounds" / "r1").mkdir(parents=True)
    (folder / "metrics.json").write_text(text)
    assert main(["round", "list"]) != 0
    assert "metrics" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", "stages: {a: [", "schema: '2.0'\nstages: {train@r1: {cmd: x, outs: 3}}\n"])
def test_a_damaged_lock_is_told_alike_by_all_that_read_it(workspace, capsys, text):
    """Before DVC or git is asked: what DVC says of it is long, and git would have it committed."""
    main(["round", "new", "--set", "train.algorithm=none"])
    (workspace / "dvc.lock").write_text(text)
    capsys.readouterr()
    said = set()
    for words in (["round", "list"], ["run"], ["run", "--rounds", "9"], ["replay", "r1"], ["replay", "r0"]):
        assert main(words) == 3, words
        said.add(capsys.readouterr())
    ((out, err),) = said
    assert out == "" and err.startswith("error: dvc.lock: ") and err.count("\n") == 2 and "git checkout -- " in err


@pytest.mark.parametrize("verb", [["round", "list"], ["round", "new"], ["sql", "SELECT 1"]])
def test_params_that_are_no_text_are_one_clear_error(workspace, capsys, verb):
    (workspace / "data").mkdir()
    (workspace / "params.yaml").write_bytes(b"\xff\xfe\x00")
    assert main(verb) == 2
    assert "mend the YAML" in capsys.readouterr().err
