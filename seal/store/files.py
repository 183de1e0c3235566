"""Files that appear whole or not at all, JSON that is the same bytes every time, hashes of content alone."""

import csv
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seal.core.errors import REMAKE, ArtifactError, MachineError, mended_by

NUMBER = int | float


@contextmanager
def atomic_dir(path: Path) -> Iterator[Path]:
    """A fresh sibling folder to write into. It takes the place of `path` when the block ends well, else it goes."""
    partial = path.with_name(f"{path.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a killed run
    with creating(path):
        partial.mkdir(parents=True)
    try:
        yield partial
        old = _set_aside(path)
        os.replace(partial, path)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        _add_path(error, path)
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def forget(folder: Path) -> None:
    """Remove a folder as a whole: a kill in between leaves nothing in its place that would be read."""
    shutil.rmtree(_set_aside(folder), ignore_errors=True)


def _set_aside(folder: Path) -> Path:
    """Give a folder, if it is there, the name that it has while it is removed; that name."""
    old = folder.with_name(f"{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)  # of a killed run
    if folder.exists():
        os.replace(folder, old)
    return old


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A sibling path to write to; the same promise for one file. Missing folders are made.

    Raises OSError or MachineError where no file can be, before anything is written.
    """
    partial = _new_partial(path)
    try:
        yield partial
        os.replace(partial, path)
    except OSError as error:
        _add_path(error, path)
        raise
    finally:
        partial.unlink(missing_ok=True)


def _new_partial(path: Path) -> Path:
    """The sibling, empty, of a file that can be written."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if path.exists() and not path.is_file():  # a device or a pipe would be replaced
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    new_folder(path.parent)
    partial = path.with_name(f"{path.name}.partial")
    with creating(path):
        partial.touch()
    return partial


def try_file(path: Path) -> None:
    """Raise what `atomic_file` would, and leave nothing behind."""
    _new_partial(path).unlink()


def new_folder(path: Path) -> Path:
    """Make a folder, and those it lies in, where there are none. Raises OSError or MachineError."""
    with creating(path):
        path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def creating(path: Path) -> Iterator[None]:
    """Raise MachineError where nothing can be made, as in /proc: the machine calls it missing, and means the right."""
    try:
        yield
    except FileNotFoundError:
        raise MachineError(str(path), "nothing can be made there", "name another place") from None


def _add_path(error: OSError, path: Path) -> None:
    """A write that fails does not say where."""
    if error.errno and not error.filename:
        error.filename = str(path)


def write_torch(path: Path, state: Any) -> None:
    """What `torch.load` reads. Imports torch."""
    import torch

    with atomic_file(path) as partial, partial.open("wb") as file:  # by its name torch does not say why it cannot
        torch.save(state, file)


def read_torch(path: Path, shape: Any = object) -> Any:
    """What `write_torch` wrote, tensors and plain values alone, on the CPU. Raises ArtifactError. Imports torch."""
    import pickle
    import zipfile

    import torch

    try:
        if zipfile.is_zipfile(path):
            value = torch.load(path, map_location="cpu", weights_only=True)
            fault = shape_error(value, shape)
        else:  # older formats are read byte by byte, with whatever error
            fault = "it is truncated, or no file of torch"
    except (OSError, RuntimeError, ValueError, KeyError, EOFError, pickle.UnpicklingError) as error:
        fault = str(error).partition("\n")[0] or type(error).__name__
    if fault:
        raise ArtifactError("torch file", f"{path}: {fault}", "remove it")
    return value


def write_json(path: Path, value: Any) -> None:
    """Keys sorted, one space of indent, a newline at the end."""
    with atomic_file(path) as partial:
        partial.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_json(path: Path, shape: Any = object) -> Any:
    """Raises ArtifactError when the file is missing, no whole JSON, or of another shape (see `shape_error`)."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ArtifactError("JSON file", path, "run the stage that writes it, or `dvc checkout`") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ArtifactError("JSON file", f"{path}: {error}", REMAKE) from None
    if fault := shape_error(value, shape):
        raise ArtifactError("JSON file", f"{path}: {fault}", REMAKE)
    return value


def read_record(path: Path, shape: Any = dict) -> Any:
    """What we wrote for ourselves (under .seal), as `read_json`: what is damaged there is made again."""
    with mended_by(f"remove it, it is made again: rm {path}"):
        return read_json(path, shape)


def shape_error(value: Any, shape: Any, at: str = "") -> str:
    """What is wrong with a plain value that should be of a shape; "" where nothing is.

    A shape is a type, {key: shape} (other keys may be there), [shape of each], or (shape of the first, ...).
    """
    kind = type(shape) if isinstance(shape, dict | list) else list if isinstance(shape, tuple) else shape
    place = at or "it"
    if not isinstance(value, kind):
        name = "object" if kind is dict else kind.__name__ if isinstance(kind, type) else kind
        return f"{place} is no {name}"
    if isinstance(shape, dict):
        if missing := next((key for key in shape if key not in value), None):
            return f"{place} has no {missing!r}"
        parts = [(value[key], inner, f"{at}.{key}".lstrip(".")) for key, inner in shape.items()]
    elif isinstance(shape, list):
        parts = [(part, shape[0], f"{at}[{i}]") for i, part in enumerate(value)]
    elif isinstance(shape, tuple):
        if len(value) != len(shape):
            return f"{place} has {len(value)} values, not {len(shape)}"
        parts = [(part, inner, f"{at}[{i}]") for i, (part, inner) in enumerate(zip(value, shape, strict=True))]
    else:
        parts = []
    return next(filter(None, (shape_error(*part) for part in parts)), "")


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> None:
    """Rows under a header; what is not there is empty."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_csv(path: Path) -> list[dict[str, str]]:
    """Rows under a header, as text."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def tree_hash(path: Path) -> str:
    """32 hex digits over the content of a file, or over names and contents of all files below a folder.

    Neither times nor modes count. Raises ArtifactError when there is nothing at `path`.
    """
    if path.is_file():
        return _file_hash(path)
    if not path.is_dir():
        raise ArtifactError("file or folder", path, "run the stage that writes it, or `dvc checkout`")
    digest = hashlib.blake2b(digest_size=16)
    for file in sorted((p for p in path.rglob("*") if p.is_file()), key=lambda p: p.relative_to(path).as_posix()):
        digest.update(f"{file.relative_to(path).as_posix()}\0{_file_hash(file)}\n".encode())
    return digest.hexdigest()


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
