"""Files that appear whole or not at all, JSON that is the same bytes every time, hashes of content alone."""

import csv
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seal.core.errors import ArtifactError


@contextmanager
def atomic_dir(path: Path) -> Iterator[Path]:
    """A fresh sibling folder to write into. It takes the place of `path` when the block ends well, else it goes."""
    partial = path.with_name(f"{path.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a killed run
    partial.mkdir(parents=True)
    try:
        yield partial
        old = path.with_name(f"{path.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        if path.exists():
            os.replace(path, old)
        os.replace(partial, path)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        _named(error, path)
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A sibling path to write to; the same promise for one file. Missing folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.partial")
    try:
        yield partial
        os.replace(partial, path)
    except OSError as error:
        _named(error, path)
        raise
    finally:
        partial.unlink(missing_ok=True)


def _named(error: OSError, path: Path) -> None:
    """A write that fails does not say where."""
    if error.errno and not error.filename:
        error.filename = str(path)


def write_torch(path: Path, state: Any) -> None:
    """What `torch.load` reads. Imports torch."""
    import torch

    with atomic_file(path) as partial, partial.open("wb") as file:  # by its name torch does not say why it cannot
        torch.save(state, file)


def write_json(path: Path, value: Any) -> None:
    """Keys sorted, one space of indent, a newline at the end."""
    with atomic_file(path) as partial:
        partial.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Raises ArtifactError when the file is missing or is no whole JSON document."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ArtifactError("JSON file", path, "run the stage that writes it, or `dvc checkout`") from None
    except (OSError, ValueError) as error:
        raise ArtifactError(
            "JSON file", f"{path}: {error}", "restore it with `dvc checkout`, or run its stage"
        ) from None


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
