"""The JSON Schema that editors read says what the settings say, and takes every file of ours."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from seal.settings.params import load_params, load_yaml
from seal.settings.schema import PATH, schema
from seal.workspace.params_file import add_round, resolve

ROOT = Path(__file__).parents[1]
FILES = [ROOT / "params.yaml", *sorted((ROOT / "presets").glob("*.yaml"))]
VALIDATOR = Draft202012Validator(json.loads((ROOT / PATH).read_text()))


def test_the_committed_schema_is_what_the_settings_make():
    Draft202012Validator.check_schema(VALIDATOR.schema)
    assert (ROOT / PATH).read_text() == schema(), "write it again: python -m seal.settings.schema"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_of_ours_names_the_schema_and_fits_it(path):
    first = path.read_text().partition("\n")[0]
    key, _, name = first.partition("=")
    assert key == "# yaml-language-server: $schema"
    assert (path.parent / name).resolve() == ROOT / PATH
    VALIDATOR.validate(load_yaml(path))


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ({"rnu": {}}, []),
        ({"run": {"threads": 0}}, ["run"]),
        ({"envs": {"shop": {"train": "many"}}}, ["envs"]),
        ({"starts": {"r0": {"env": "shop"}}}, ["starts"]),
        ({"starts": {"r0": {"env": "shop", "policy": {"kind": "hf", "lora_rnak": 3}}}}, ["starts"]),
        ({"starts": {"r0": {"env": "shop", "policy": {"kind": "endpoint", "url": "x", "model": "m"}}}}, ["starts"]),
        ({"rounds": {"r1": {"train": {}}}}, ["rounds"]),
        ({"rounds": {"r1": {"parent": "r0", "train": {"loss": "sapo"}}}}, ["rounds"]),
        ({"rounds": {"r1": {"parent": "r0", "train": {"clip": [1.0]}}}}, ["rounds"]),
    ],
)
def test_what_is_wrong_does_not_fit(data, key):
    (error,) = VALIDATOR.iter_errors(data)
    assert list(error.absolute_path) == key


def test_a_new_round_leaves_the_line_that_names_the_schema(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text((ROOT / "params.yaml").read_text())
    add_round(path, "x1", resolve(load_params(path), "r0", {}))
    text = (ROOT / "params.yaml").read_text()
    assert path.read_text().startswith(text.partition("\nrounds:")[0])
