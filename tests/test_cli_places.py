"""Where answers go: every option that names a place refuses what cannot be written before any work is done."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from store_cases import write_tree

from seal.cli import VERBS, build_parser, main
from seal.commands.places import file_place
from seal.core.errors import MachineError, ParamError
from seal.store.files import atomic_dir, atomic_file, new_folder, write_json
from seal.store.parquet import write_parquet

ROOT = Path(__file__).parents[1]
LOG = '{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}\n'
RUN = ("experiment", "rises", "--seeds", "1", "--rounds", "1", "--set", "train.steps=0")
FILES = {  # command -> the option that names a file
    "sql": (("sql", "SELECT 1 AS a", "--root", "w", "--output"), "a.csv"),
    "sql as parquet": (("sql", "SELECT 1 AS a", "--root", "w", "--format", "parquet", "--output"), "a.parquet"),
    "diagnose --input": (("diagnose", "--input", "log.jsonl", "--output"), "a.csv"),
    "diagnose --inject": (("diagnose", "--inject", "--env", "shop", "--n", "1", "--output"), "a.csv"),
    "report": (("report", "--root", "w", "--out"), "a.html"),
    "export preferences": (("export", "preferences", "--root", "w", "--out"), "a.jsonl"),
}
FOLDERS = {
    "experiment --out": (*RUN, "--root", "w", "--out"),
    "experiment --results": (*RUN, "--root", "w", "--results"),
    "transfer --results": (*RUN[:1], "transfer", *RUN[2:], "--to", "compliance", "--root", "w", "--results"),
}
LONG = "a" * 300
NO_FILE = {"": 2, ".": 2, "..": 2, "w": 2, "none/x": 2, "log.jsonl/x": 2, "pipe": 2, "dangling": 2, "round": 7, LONG: 7}
NO_FOLDER = {"log.jsonl": 2, "log.jsonl/x/y": 2, "pipe": 2, f"w/{LONG}": 7}
if Path("/proc/self").is_dir():  # nobody can make anything there
    NO_FILE |= {"/proc/x": 7, "/proc/self/x": 7}
    NO_FOLDER |= {"/proc/x": 7, "/proc/x/y/z": 7}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = write_tree(tmp_path_factory.mktemp("tree"))
    shutil.copy(ROOT / "params.yaml", root)
    return root


@pytest.fixture
def here(tree, tmp_path, monkeypatch):
    (tmp_path / "w").symlink_to(tree)
    (tmp_path / "log.jsonl").write_text(LOG)
    (tmp_path / "dangling").symlink_to("none/x")
    (tmp_path / "round").symlink_to("round")
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def seen(folder: Path) -> dict[str, tuple[int, int]]:
    """What lies there: kinds and times of writing."""
    found = [path for root in (folder, folder / "w") for path in root.iterdir()]
    return {str(path): (path.lstat().st_mode, path.lstat().st_mtime_ns) for path in found}


def options(parser: argparse.ArgumentParser) -> list[str]:
    found = []
    for action in parser._actions:
        found += [name for name in action.option_strings if name in ("--out", "--output", "--results")]
        for sub in action.choices.values() if isinstance(action, argparse._SubParsersAction) else ():
            found += options(sub)
    return found


def test_every_option_that_names_a_place_is_tried_here():
    tried = {(words[0], words[-1]) for words in (*(words for words, _ in FILES.values()), *FOLDERS.values())}
    assert tried == {(verb, name) for verb in VERBS for name in options(build_parser(verb))}


@pytest.mark.parametrize("place", NO_FILE)
@pytest.mark.parametrize("command", FILES)
def test_no_file_can_be_there(here, capsys, command, place):
    before = seen(here)
    assert main([*FILES[command][0], place]) == NO_FILE[place]
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("error: ") and said.err.count("\n") == 2 and place in said.err
    assert seen(here) == before


@pytest.mark.parametrize("name", ["log.jsonl", "./log.jsonl", "same.jsonl"])
def test_labels_do_not_go_over_the_log(here, capsys, name):
    (here / "same.jsonl").symlink_to("log.jsonl")
    assert main(["diagnose", "--input", "log.jsonl", "--output", name]) == 2
    assert "the log itself" in capsys.readouterr().err and (here / "log.jsonl").read_text() == LOG


@pytest.mark.parametrize("place", NO_FOLDER)
@pytest.mark.parametrize("command", FOLDERS)
def test_no_folder_can_be_there(here, capsys, command, place):
    before = seen(here)
    assert main([*FOLDERS[command], place]) == NO_FOLDER[place]
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("error: ") and said.err.count("\n") == 2 and place in said.err
    assert seen(here) == before


ASKED = """
import os, sys
from pathlib import Path
from seal.commands.places import {0}
from seal.core.errors import as_seal_error
if not os.getuid():
    os.seteuid(65534)
try:
    {0}("--option", Path(sys.argv[1]))
except Exception as error:
    print(as_seal_error(error).value)
"""


@pytest.mark.parametrize("kind", ["file_place", "folder_place"])
def test_a_folder_without_the_right_to_write_is_refused(kind):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        words = [sys.executable, "-c", ASKED.format(kind), f"{folder}/x"]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        assert (done.stdout, done.stderr, os.listdir(folder)) == ("Permission denied\n", "", [])


def test_what_an_option_links_to_is_written_and_the_link_stays(tmp_path):
    (tmp_path / "link.csv").symlink_to("real.csv")
    assert file_place("--output", tmp_path / "link.csv") == tmp_path / "real.csv"
    assert main(["sql", "SELECT 1 AS a", "--output", str(tmp_path / "link.csv"), "--root", str(tmp_path)]) == 3
    (tmp_path / "data").mkdir()
    assert main(["sql", "SELECT 1 AS a", "--output", str(tmp_path / "link.csv"), "--root", str(tmp_path)]) == 0
    assert (tmp_path / "link.csv").is_symlink() and (tmp_path / "real.csv").read_text() == "a\n1\n"


def table():
    import pyarrow

    return pyarrow.table({"a": [1]})


WRITERS = {
    "text": lambda path: atomic_file(path).__enter__(),
    "json": lambda path: write_json(path, {}),
    "parquet": lambda path: write_parquet(path, table()),
    "folder": lambda path: atomic_dir(path).__enter__(),
    "new folder": new_folder,
}


@pytest.mark.parametrize("writer", WRITERS)
def test_a_writer_never_takes_the_place_of_a_device(here, writer):
    """As root it would: everybody's /dev/null was a file then."""
    if writer != "folder":
        with pytest.raises(OSError) as caught:
            WRITERS[writer](here / "pipe")
        assert Path(caught.value.filename) == here / "pipe" and (here / "pipe").is_fifo()
    if "/proc/x" in NO_FILE:
        with pytest.raises(MachineError, match="nothing can be made there"):
            WRITERS[writer](Path("/proc/x"))


def test_a_pipe_is_told_as_what_it_is(here):
    with pytest.raises(ParamError, match="a device or a pipe"):
        file_place("--output", here / "pipe")


def test_an_option_that_writes_nothing_is_refused(here, capsys):
    assert main(["diagnose", "--sensitivity", "--env", "shop", "--output", "a.csv"]) == 2
    assert capsys.readouterr().err.startswith("error: --output: a.csv\n")


ASKS = {  # verb -> a question to a workspace, by its name or path where that is said
    "sql": ("sql", "SELECT count(*) FROM outcomes"),
    "top": ("top", "r1"),
    "show": ("show", "0"),
    "interface": ("interface", "show", "r0"),
    "export": ("export", "preferences", "r1", "--out", "p.jsonl"),
    "report": ("report", "--table"),
    "diagnose": ("diagnose", "--sensitivity", "--round", "r9"),
    "experiment": ("experiment", "rises", "--start", "r9"),
}


def roots(parser: argparse.ArgumentParser) -> list[Path]:
    """Defaults of --root, also of the verbs within a verb."""
    found = [action.default for action in parser._actions if "--root" in action.option_strings]
    for action in parser._actions:
        for sub in action.choices.values() if isinstance(action, argparse._SubParsersAction) else ():
            found += roots(sub)
    return found


def test_every_verb_that_takes_a_root_is_asked_here():
    assert {verb for verb in VERBS if roots(build_parser(verb))} == ASKS.keys()


@pytest.mark.parametrize("verb", ASKS)
def test_a_workspace_is_found_from_a_folder_in_it(tree, tmp_path, monkeypatch, capsys, verb):
    """What is said is the same from everywhere in it, and with --root from outside."""
    for place in ("w/a/b", "outside"):
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "w" / "data").symlink_to(tree / "data")
    shutil.copy(ROOT / "params.yaml", tmp_path / "w")
    (tmp_path / "w" / "dvc.yaml").touch()
    said = []
    for place, words in (("w", ()), ("w/a/b", ()), ("outside", ("--root", "../w"))):
        monkeypatch.chdir(tmp_path / place)
        code = main([*ASKS[verb], *words])
        out, err = capsys.readouterr()
        where = (str(tmp_path / "w") + "/", "../w/", "")  # how its files are named
        said.append((code, *(re.sub("|".join(map(re.escape, where[:2])), "", text) for text in (out, err))))
    assert said[0] == said[1] == said[2] != (0, "", "")
    monkeypatch.chdir(tmp_path / "outside")
    assert set(roots(build_parser(verb))) == {Path()}
    monkeypatch.chdir(tmp_path / "w")
    assert set(roots(build_parser(verb))) == {Path()}
    monkeypatch.chdir(tmp_path / "w" / "a")
    assert set(roots(build_parser(verb))) == {tmp_path / "w"}


def test_what_the_user_types_stays_relative_to_the_current_folder(tree, tmp_path, monkeypatch):
    (tmp_path / "w" / "a").mkdir(parents=True)
    (tmp_path / "w" / "data").symlink_to(tree / "data")
    for name in ("params.yaml", "dvc.yaml"):
        shutil.copy(ROOT / name, tmp_path / "w")
    monkeypatch.chdir(tmp_path / "w" / "a")
    assert main(["sql", "SELECT 1 AS a", "--output", "a.csv"]) == 0
    assert (tmp_path / "w" / "a" / "a.csv").read_text() == "a\n1\n"
