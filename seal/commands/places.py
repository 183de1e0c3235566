"""Where answers go: looked at before any work is done, so that nothing is computed that cannot be kept."""

from pathlib import Path
from tempfile import TemporaryFile

from seal.core.errors import ParamError
from seal.store.files import possible, try_file


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
        with possible(path), TemporaryFile(dir=there):
            return path
    except OSError as error:
        error.filename = str(path)  # not a name that nobody gave
        raise
