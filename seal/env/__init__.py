"""Environments. `load_env(name, **options)` is the one way to get one."""

from typing import Any

from seal.core.errors import ParamError
from seal.env.base import Environment

NAMES = ("shop", "compliance", "bfcl", "bfcl_memory", "bfcl_web", "custom", "tau2")


def load_env(name: str, **options: Any) -> Environment:
    """The environment of that name; `options` as in `envs.<name>` of params.yaml. `custom:my_pkg.my_tools` is short
    for `custom` with that module, `tau2:retail` for that domain, `tau2:solo` for telecom without a user.

    Raises ParamError for an unknown name. Each environment's own libraries load only here.
    """
    if name == "shop":
        from seal.env.shop import ShopEnv

        return ShopEnv(**options)
    if name == "compliance":
        from seal.env.compliance import ComplianceEnv

        return ComplianceEnv(**options)
    if name == "bfcl":
        from seal.env.bfcl import BfclEnv

        return BfclEnv(**options)
    if name == "bfcl_memory":
        from seal.env.bfcl_memory import BfclMemoryEnv

        return BfclMemoryEnv(**options)
    if name == "bfcl_web":
        from seal.env.bfcl_web import BfclWebEnv

        return BfclWebEnv(**options)
    if name == "custom" or name.startswith("custom:"):
        from seal.env.custom import CustomEnv

        return CustomEnv(**({"module": name.removeprefix("custom:")} if ":" in name else {}), **options)
    if name.partition(":")[0] == "tau2":
        from seal.env.tau2 import Tau2Env, named

        return Tau2Env(**named(name.partition(":")[2]), **options)
    raise ParamError("environment", name, f"known environments: {', '.join(NAMES)}")
