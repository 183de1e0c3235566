"""The installed bfcl_eval package as data and as modules, without importing what it must not import.

Importing bfcl_eval.utils or its constants.eval_config makes folders beside the package, and its runner loads every
vendor's SDK. What is needed here, data files and environment classes, is found on the path and needs mpmath alone.
"""

import copy
import marshal
from collections.abc import Mapping
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from seal.env.package import Package

CATEGORIES = ("base", "miss_func", "miss_param", "long_context")
MODULES: Mapping[str, str] = {  # class -> the module it is in
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
WORLDS = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
EXTENSIONS = "long_context"  # module of the records that pad long-context tasks


PACKAGE = Package("bfcl_eval", "bfcl_eval", "pip install --no-deps -r requirements-nodeps.lock, and mpmath")
root, lines = cache(PACKAGE.root), PACKAGE.json_lines


def _deepcopy(value: Any) -> Any:
    """copy.deepcopy, several times as fast on plain values, which is what scenarios start from."""
    try:
        return marshal.loads(marshal.dumps(value))
    except ValueError:  # made of more
        return copy.deepcopy(value)


def source_of(name: str) -> Path:
    """The file of an environment module."""
    return root() / "eval_checker" / "multi_turn_eval" / "func_source_code" / f"{name}.py"


@cache
def module(name: str) -> ModuleType:
    """An environment module of our own: not the one in sys.modules, which the official checker runs and changes."""
    spec = spec_from_file_location(f"{WORLDS}.{name}", source_of(name))
    made = module_from_spec(spec)
    spec.loader.exec_module(made)
    if name != EXTENSIONS:  # what it imported from there is the official module's
        ours = vars(module(EXTENSIONS))
        vars(made).update({key: value for key, value in ours.items() if key.isupper() and key in vars(made)})
    if "deepcopy" in vars(made):
        made.deepcopy = _deepcopy
    return made
