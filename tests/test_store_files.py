"""Whole or not at all; the same bytes; hashes of content alone."""

import os

import pytest

from seal.core.errors import ArtifactError
from seal.store.files import atomic_dir, atomic_file, read_json, tree_hash, write_json


def test_a_folder_is_replaced_whole(tmp_path):
    place = tmp_path / "stage"
    for text in ("one", "two"):
        with atomic_dir(place) as out:
            (out / f"{text}.txt").write_text(text)
            assert not (place / f"{text}.txt").exists()
    assert [path.name for path in place.iterdir()] == ["two.txt"]
    assert [path.name for path in tmp_path.iterdir()] == ["stage"]


def test_a_failing_block_leaves_what_was_there(tmp_path):
    with atomic_dir(tmp_path / "stage") as out:
        (out / "good").write_text("")
    with pytest.raises(RuntimeError), atomic_dir(tmp_path / "stage") as out:
        (out / "half").write_text("")
        raise RuntimeError("killed")
    assert [path.name for path in (tmp_path / "stage").iterdir()] == ["good"]
    assert [path.name for path in tmp_path.iterdir()] == ["stage"]


def test_rests_of_a_killed_run_do_not_matter(tmp_path):
    (tmp_path / "stage.partial").mkdir()
    (tmp_path / "stage.partial" / "rest").write_text("")
    with atomic_dir(tmp_path / "stage") as out:
        (out / "new").write_text("")
    assert [path.name for path in (tmp_path / "stage").iterdir()] == ["new"]


def test_a_file_appears_whole(tmp_path):
    path = tmp_path / "deep" / "file"
    with pytest.raises(RuntimeError), atomic_file(path) as partial:
        partial.write_text("half")
        raise RuntimeError("killed")
    assert list(path.parent.iterdir()) == []
    with atomic_file(path) as partial:
        partial.write_text("whole")
    assert path.read_text() == "whole"


def test_json_is_sorted_and_comes_back(tmp_path):
    value = {"b": [1.5, None, "ü"], "a": {"y": True, "x": 0}}
    write_json(tmp_path / "one.json", value)
    write_json(tmp_path / "two.json", dict(reversed(value.items())))
    assert read_json(tmp_path / "one.json") == value
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()
    assert (tmp_path / "one.json").read_text().endswith("}\n")


def test_missing_and_truncated_json_are_told_apart(tmp_path):
    with pytest.raises(ArtifactError, match="run the stage"):
        read_json(tmp_path / "none.json")
    (tmp_path / "half.json").write_text('{"a": ')
    with pytest.raises(ArtifactError, match=r"half\.json: Expecting value"):
        read_json(tmp_path / "half.json")


def test_a_hash_sees_names_and_contents_alone(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "b").write_text("b")
        (tmp_path / name / "a").write_text("a")
    os.utime(tmp_path / "two" / "a", (0, 0))
    (tmp_path / "two" / "a").chmod(0o600)
    assert tree_hash(tmp_path / "one") == tree_hash(tmp_path / "two")
    (tmp_path / "two" / "a").rename(tmp_path / "two" / "c")
    assert tree_hash(tmp_path / "one") != tree_hash(tmp_path / "two")
    assert len(tree_hash(tmp_path / "one" / "a")) == 32
    with pytest.raises(ArtifactError):
        tree_hash(tmp_path / "none")


@pytest.mark.parametrize("atomic", [atomic_file, atomic_dir])
def test_a_write_that_fails_is_named_and_leaves_what_was_there(tmp_path, atomic):
    with pytest.raises(OSError) as caught, atomic(tmp_path / "it"), open("/dev/full", "w") as full:
        full.write("x" * 100_000)
    assert caught.value.filename == str(tmp_path / "it") and list(tmp_path.iterdir()) == []
