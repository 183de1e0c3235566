"""docs/tables.md names every table, view, column and key there is, and no other."""

import re
from pathlib import Path

import pytest

from seal.store.schemas import TABLES
from seal.workspace.derived_views import DERIVED
from seal.workspace.views import ask, connect

PAGE = (Path(__file__).parents[1] / "docs" / "tables.md").read_text()
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S))


def test_every_table_and_view_has_a_section():
    assert set(SECTIONS) == {*TABLES, *DERIVED, "rounds"}


@pytest.mark.parametrize("name", TABLES)
def test_columns_and_keys_are_those_of_the_schema(name):
    cells = re.findall(r"^\| (?!column|---)(.+?) \|", SECTIONS[name], re.M)
    found = [column for cell in cells for column in cell.split(", ")]
    assert sorted(column.strip("*") for column in found) == sorted(TABLES[name].names)
    assert {column.strip("*") for column in found if column.startswith("**")} == set(TABLES[name].key)


@pytest.mark.parametrize("name", sorted({*DERIVED, "rounds"} - {*TABLES}))
def test_columns_of_views_are_named(tmp_path, name):
    columns = {*ask(connect(tmp_path), f"FROM {name}").column_names} - {"round", "parent", "depth"}
    assert columns <= set(re.findall(r"`(\w+)`", SECTIONS[name]))
