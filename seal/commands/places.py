"""Where tables lie, and where answers go: looked at before any work is done, so that nothing is computed that cannot be
kept."""

import argparse
from pathlib import Path
from tempfile import TemporaryFile

from seal.core.errors import ParamError, RoundError
from seal.store.files import creating, try_file
from seal.workspace.lineage import find_root


def add_root(parser: argparse.ArgumentParser, of: str = "") -> None:
    """--root; `of`: what alone takes it."""
    text = f"the workspace{of} (default: the one that holds the current folder)"
    parser.add_argument("--root", type=Path, default=_root(), help=text)


def add_settings(parser: argparse.ArgumentParser, option: str, text: str) -> None:
    """An option that may be given many times, each time with a key and its value."""
    parser.add_argument(option, action="append", default=[], metavar="KEY=VALUE", help=text)


def _root() -> Path:
    """The workspace that holds the current folder, else that folder: as it is, so that what is printed stays short."""
    try:
        root = find_root()
        return Path() if root == Path.cwd() else root
    except (RoundError, OSError):  # a current folder that is gone is told by who reads there
        return Path()


def file_place(option: str, path: Path | None) -> Path | None:
    """The file to write for `option`: `path`, or what it links to. Raises ParamError, OSError or MachineError."""
    if path is None:
        return None
    found = path.resolve() if path.is_symlink() else path
    if found.is_dir() or not found.parent.is_dir():
        raise ParamError(option, path, "name a file in a folder that exists")
    if path.exists() and not path.is_file():
        raise ParamError(option, path, "a device or a pipe stands there: name a file")
    try_file(found)
    return found


def folder_place(option: str, path: Path | None) -> Path | None:
    """The folder to write to, there or not. Raises ParamError, OSError or MachineError."""
    if path is None:
        return None
    there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    if not there.is_dir():
        raise ParamError(option, path, f"{there} is a file: name a folder")
    try:
        with creating(path), TemporaryFile(dir=there):
            return path
    except OSError as error:
        error.filename = str(path)  # not a name that nobody gave
        raise
