"""The installed bfcl_eval package as data and as modules, without importing what it must not import.

Importing bfcl_eval.utils or its constants.eval_config makes folders beside the package, and its runner loads every
vendor's SDK. What is needed here, data files and environment classes, is found on the path and needs mpmath alone.
"""

import copy
import json
import marshal
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from seal.core.errors import ArtifactError, DependencyError
from seal.core.types import Json

CATEGORIES = ("base", "miss_func", "miss_param", "long_context")
MODULES = MappingProxyType(
    {
        "GorillaFileSystem": "gorilla_file_system",
        "MathAPI": "math_api",
        "MessageAPI": "message_api",
        "TwitterAPI": "posting_api",
        "TicketAPI": "ticket_api",
        "TradingBot": "trading_bot",
        "TravelAPI": "travel_booking",
        "VehicleControlAPI": "vehicle_control",
    }
)
WORLDS = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
EXTENSIONS = "long_context"  # module of the records that pad long-context tasks


@cache
def root() -> Path:
    """The package's folder. Raises DependencyError when it is not installed."""
    spec = find_spec("bfcl_eval")
    if spec is None or not spec.submodule_search_locations:
        remedy = "pip install --no-deps -r requirements-nodeps.lock, and mpmath"
        raise DependencyError("package", "bfcl_eval is not installed", remedy)
    return Path(spec.submodule_search_locations[0])


def package_version() -> str:
    root()
    try:
        return version("bfcl_eval")
    except PackageNotFoundError:
        return "unknown"


def lines(*parts: str) -> list[Json]:
    """One of the package's JSON-lines data files. Raises ArtifactError where it is missing or broken."""
    path = root().joinpath("data", *parts)
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise ArtifactError("BFCL data file", f"{'/'.join(parts)}: {error}", "install the pinned bfcl_eval") from None


def _deepcopy(value: Any) -> Any:
    """copy.deepcopy, several times as fast on plain values, which is what scenarios start from."""
    try:
        return marshal.loads(marshal.dumps(value))
    except ValueError:  # made of more
        return copy.deepcopy(value)


@cache
def module(name: str) -> ModuleType:
    """An environment module of our own: not the one in sys.modules, which the official checker runs and changes."""
    path = root() / "eval_checker" / "multi_turn_eval" / "func_source_code" / f"{name}.py"
    spec = spec_from_file_location(f"{WORLDS}.{name}", path)
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    if name != EXTENSIONS:  # what it imported from there is the official module's
        ours = vars(module(EXTENSIONS))
        vars(made).update({key: value for key, value in ours.items() if key.isupper() and key in vars(made)})
    if "deepcopy" in vars(made):
        made.deepcopy = _deepcopy
    return made
