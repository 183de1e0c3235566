"""Environments. `load_env(name, **options)` is the one way to get one."""

from typing import Any

from seal.core.errors import ParamError
from seal.env.base import Environment

NAMES = ("shop", "bfcl")


def load_env(name: str, **options: Any) -> Environment:
    """The environment of that name; `options` as in `envs.<name>` of params.yaml.

    Raises ParamError for an unknown name. Each environment's own libraries load only here.
    """
    if name == "shop":
        from seal.env.shop import ShopEnv

        return ShopEnv(**options)
    if name == "bfcl":
        from seal.env.bfcl import BfclEnv

        return BfclEnv(**options)
    raise ParamError("environment", name, f"known environments: {', '.join(NAMES)}")
