"""Adding rounds to params.yaml leaves the rest of the file as it is."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from seal.core.errors import ParamError, RoundError
from seal.settings.params import load_params, load_yaml
from seal.settings.typed import plain
from seal.workspace.params_file import add_preset, add_round, next_id, params_with_preset, parse_settings, resolve

TEXT = """# before
run: {seed: 3}   # a seed
envs:
  shop: {}
starts:
  r0:  # the start
    env: shop
    recipe: 1
    policy: {kind: scripted}
    evaluate: {split: test, tasks: 3, trials: 1, temperature: 0.0, measure_on: true, max_action_tokens: 24, context: 512}
defaults:
  train: {lr: 0.001}
rounds:
"""  # noqa: E501


@pytest.fixture
def path(tmp_path) -> Path:
    (tmp_path / "params.yaml").write_text(TEXT)
    return tmp_path / "params.yaml"


def add(path: Path, name: str, parent: str, *settings: str) -> None:
    add_round(path, name, resolve(load_params(path), parent, parse_settings(settings), name=name))


def test_a_new_round_is_resolved_and_comments_stay(path):
    add(path, "r1", "r0", "train.steps=2", "evolve.interface=none")
    assert path.read_text().startswith(TEXT)
    found = load_params(path).rounds["r1"]
    assert (found.train.lr, found.train.steps, found.evolve.interface) == (0.001, 2, "none")


def test_later_defaults_do_not_change_a_round(path):
    add(path, "r1", "r0")
    before = load_params(path).rounds["r1"]
    path.write_text(path.read_text().replace("lr: 0.001}", "lr: 0.5}", 1))
    assert load_params(path).defaults.train.lr == 0.5
    assert load_params(path).rounds["r1"] == before


def test_a_round_is_never_overwritten(path):
    add(path, "r1", "r0")
    with pytest.raises(RoundError, match="never changed"):
        add(path, "r1", "r0")


def test_rounds_that_are_added_at_once_are_all_there(path):
    names = [f"p{i}" for i in range(12)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda name: add(path, name, "r0"), names))
        taken = [pool.submit(add, path, "p12", "r0") for _ in range(4)]
    assert set(load_params(path).rounds) == {*names, "p12"}
    assert sum(isinstance(one.exception(), RoundError) for one in taken) == 3  # told, not written over


@pytest.mark.parametrize("setting", ["train.lrr=1", "train.lr=x", "train.lr", "nothing=1", "train=1"])
def test_a_wrong_setting_writes_nothing(path, setting):
    with pytest.raises(ParamError):
        add(path, "r1", "r0", setting)
    assert path.read_text() == TEXT


def test_names_follow_the_parent(path):
    assert next_id(load_params(path), "r0") == "r1"
    add(path, "r1", "r0")
    assert next_id(load_params(path), "r1") == "r2"
    assert next_id(load_params(path), "r0") == "r2"


def test_a_preset_is_added_once_and_with_its_own_defaults(path):
    preset = {
        "starts": {"p0": {"env": "shop", "policy": {"kind": "scripted"}}},
        "defaults": {"collect": {"tasks": 2}},
        "rounds": {"p1": {"parent": "p0", "train": {"algorithm": "none"}}, "p2": {"parent": "p1"}},
    }
    assert add_preset(path, preset) == ["p1", "p2"]
    text = path.read_text()
    assert add_preset(path, preset) == ["p1", "p2"]
    assert path.read_text() == text
    found = load_params(path)
    assert found.rounds["p1"].collect.tasks == found.rounds["p2"].collect.tasks == 2
    assert found.rounds["p1"].train.lr == 0.001
    assert (found.rounds["p1"].train.algorithm, found.rounds["p2"].train.algorithm) == ("none", "grpo")
    assert found.defaults.collect.tasks == 16


def test_what_is_written_is_what_is_read(path):
    entry = resolve(load_params(path), "r0", {})
    add_round(path, "r1", entry)
    assert plain(load_params(path).rounds["r1"]) == entry


@pytest.mark.parametrize("preset", sorted((Path(__file__).parents[1] / "presets").glob("*.yaml")), ids=lambda p: p.stem)
def test_every_preset_fits_into_the_shipped_params(preset, tmp_path):
    shipped = Path(__file__).parents[1] / "params.yaml"
    (tmp_path / "params.yaml").write_text(shipped.read_text())
    names = add_preset(tmp_path / "params.yaml", load_yaml(preset))
    found = load_params(tmp_path / "params.yaml")
    assert names
    assert set(names) <= set(found.rounds)


@pytest.mark.parametrize(("preset", "says"), [
    ({"nope": 1}, "preset.nope"),
    ({"envs": [1]}, "preset envs"),
    ({"defaults": 3}, "preset defaults"),
    ({"starts": {"z0": 3}}, "preset starts.z0"),
    ({"starts": {"z0": None}}, "starts.z0.env"),
    ({"rounds": {"z1": 3}}, "preset rounds.z1"),
    ({"rounds": {"z1": {"train": {}}}}, "preset rounds.z1"),
    ({"rounds": {"z1": {"parent": 5}}}, "preset rounds.z1"),
    ({"rounds": {"z1": {"parent": ["r0"]}}}, "preset rounds.z1"),
])  # fmt: skip
def test_a_preset_with_anything_else_in_it_is_refused(tmp_path, preset, says):
    path = tmp_path / "params.yaml"
    path.write_text("envs: {shop: {}}\n")
    with pytest.raises(ParamError, match=says):
        add_preset(path, preset)


@pytest.mark.parametrize("text", ["", "null", "[]", "3"])
def test_a_preset_over_what_is_no_mapping_is_refused(tmp_path, text):
    path = tmp_path / "params.yaml"
    path.write_text(text)
    for over in (add_preset, params_with_preset):
        with pytest.raises(ParamError, match="params.yaml"):
            over(path, {"envs": {"shop": {}}})
    assert path.read_text() == text


def test_a_preset_that_says_otherwise_of_a_round_that_exists_is_refused(path):
    add_preset(path, {"rounds": {"q1": {"parent": "r0", "train": {"lr": 0.5}}}})
    before = path.read_text()
    for change in (
        {"parent": "q1"},
        {"parent": "r0", "train": {"lr": 0.25}},
        {"parent": "r0", "collect": {"tasks": 3}},
    ):
        with pytest.raises(ParamError, match="another"):
            add_preset(path, {"rounds": {"q1": change}})
    with pytest.raises(ParamError, match="mapping"):
        add_preset(path, None)
    assert path.read_text() == before


@pytest.mark.parametrize("section", ["envs", "starts"])
def test_a_preset_that_says_otherwise_of_an_environment_or_a_start_is_refused(path, section):
    data = load_yaml(path)
    name = next(iter(data[section]))
    other = {"train": 7} if section == "envs" else {"env": "bfcl"}
    before = path.read_text()
    with pytest.raises(ParamError, match=rf"preset {section}.{name}"):
        add_preset(path, {section: {name: other}})
    assert path.read_text() == before
    add_preset(path, {section: {name: data[section][name]}})
