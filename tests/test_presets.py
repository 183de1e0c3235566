"""Presets say what they mean: the page's table holds of them, and nothing comes in from another model's defaults."""

import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from seal.settings.params import load_yaml
from seal.workspace.params_file import merged, params_with_preset, read_preset, resolve

ROOT = Path(__file__).parents[1]
NAMES = sorted(path.stem for path in (ROOT / "presets").glob("*.yaml"))
OWN = [name for name in NAMES if "defaults" in read_preset(ROOT, name)]
PAGE = (ROOT / "docs" / "scale.md").read_text()


def resolved(name, params=ROOT / "params.yaml"):
    """The preset's first round, complete; its rounds differ in their parents alone."""
    preset = read_preset(ROOT, name)
    found, start = params_with_preset(params, preset)
    changes = [{**change, "parent": start} for change in preset["rounds"].values()]
    assert all(change == changes[0] for change in changes)
    return resolve(found, start, changes[0])


def table():
    """(presets that the table is of, what the code spans of their column say; a span without a section is of train)"""
    (head,) = re.findall(r"^\| setting \| paper .*\| (.+?) \|$", PAGE, re.M)
    rows = re.search(r"^\| setting \| paper .*\n\|---.*\n((?:\|.*\n)+)", PAGE, re.M)[1].splitlines()
    said = []
    for row in rows:
        for span in re.findall(r"`([^`]+)`", row.split("|")[3]):
            ((key, value),) = YAML(typ="safe", pure=True).load(span).items()
            said.append({key: value} if isinstance(value, dict) else {"train": {key: value}})
    return re.findall(r"`([^`]+)`", head), said


def test_the_pages_table_is_what_the_presets_resolve_to():
    names, said = table()
    assert len(names) == 3 and set(names) <= set(OWN)
    told = {key for change in said for key in change.get("train", {})}
    ours = {"loss", "epsilon_high", "negative", "replay", "rehearse", "schedule", "num_iterations", "condition"}
    assert ours <= told
    for name in names:
        entry = resolved(name)
        for change in said:
            assert merged(entry, change) == entry, (name, change)


@pytest.mark.parametrize("name", OWN)
def test_a_preset_with_defaults_of_its_own_takes_none_from_the_demos(name, tmp_path):
    """What is not the library's default is written in the preset, not in params.yaml, whose defaults are nano's."""
    other = {**load_yaml(ROOT / "params.yaml"), "defaults": {}}
    with (tmp_path / "params.yaml").open("w") as file:
        YAML().dump(other, file)
    assert resolved(name, tmp_path / "params.yaml") == resolved(name)


def unread(train):
    """Keys of an update that it does not read."""
    keys = {"epsilon"} if train["loss"] == "cispo" else set()
    keys |= {"reference"} if not train["beta"] and train["algorithm"] != "dpo" else set()
    keys |= {"dpo_beta"} if train["algorithm"] != "dpo" else set()
    keys |= {"alpha", "ema", "clip", "utility"} if train["weights"] == "none" else set()
    keys |= {"negative"} if train["drop_negative"] == "all" else set()
    return keys | ({"replayed"} if not train["replay"] else set())


@pytest.mark.parametrize("name", NAMES)
def test_no_preset_states_what_its_update_does_not_read(name):
    preset = read_preset(ROOT, name)
    stated = {**(preset.get("defaults") or {}).get("train", {})}
    for change in preset["rounds"].values():
        stated |= change.get("train", {})
    assert not unread(resolved(name)["train"]) & stated.keys()


@pytest.mark.parametrize("name", OWN)
def test_replay_is_no_more_than_a_step_plays(name):
    entry = resolved(name)
    assert 0 < entry["train"]["replay"] <= entry["collect"]["tasks"] * entry["collect"]["group_size"]
