"""Environments: tasks, bare tool docs, and sessions that execute literal calls. `base` says what one is.

`load_env(name, **options)` is the one way to get one, `env_of` with its entry of params.yaml. A new one is a module (or
a `Domain` in YAML, as shop and compliance are) and a row in CLASSES.
"""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import resolve_name
from typing import Any

from seal.core.errors import ParamError
from seal.env.base import Environment
from seal.settings.params import Params
from seal.settings.typed import plain

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = ["NAMES", "env_of", "load_env"]
__all__ += ["base", "domain", "domain_tasks", "lexicon", "limit", "procedural", "spoken_answers"]
__all__ += ["bfcl", "custom", "tau2"]

CLASSES: Mapping[str, str] = {  # module below seal.env -> its Environment
    "shop": "ShopEnv",
    "compliance": "ComplianceEnv",
    "bfcl": "BfclEnv",
    "bfcl_memory": "BfclMemoryEnv",
    "bfcl_web": "BfclWebEnv",
    "custom": "CustomEnv",
    "tau2": "Tau2Env",
}
NAMES = tuple(CLASSES)
WITH_VARIANTS = ("custom", "tau2")  # their modules say what `<name>:<variant>` is short for: `named(variant)`


def load_env(name: str, **options: Any) -> Environment:
    """The environment of that name; `options` as in `envs.<name>` of params.yaml. `custom:my_pkg.my_tools` is short
    for `custom` with that module, `tau2:retail` for that domain, `tau2:solo` for telecom without a user.

    Raises ParamError for an unknown name. Each environment's own libraries load only here.
    """
    kind, colon, variant = name.partition(":")
    if kind not in CLASSES or (colon and kind not in WITH_VARIANTS):
        raise ParamError("environment", name, f"known environments: {', '.join(NAMES)}")
    short = import_module(f"seal.env.{kind}").named(variant) if colon else {}
    return resolve_name(f"seal.env.{kind}:{CLASSES[kind]}")(**short, **options)


def env_of(params: Params, name: str) -> Environment:
    """The environment `envs.<name>` of params.yaml."""
    return load_env(name, **plain(params.envs[name]))
