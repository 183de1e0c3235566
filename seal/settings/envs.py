"""What an environment takes in params.yaml."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from seal.settings.typed import URL, later, ranged


@dataclass(frozen=True, slots=True)
class DomainParams:
    """A built-in domain: seed of its task generator, number of scenarios a split, and the share of its hidden facts
    that the bare docs tell after all (the facts told at a lower share are among those at a higher one)."""

    seed: int = ranged(0, 0)
    train: int = ranged(60, 1)
    dev: int = ranged(15, 0)
    test: int = ranged(50, 1)
    told: float = later(0.0, 0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class BfclParams:
    """BFCL V3 multi-turn has nothing to set: its tasks and its split are pinned."""


@dataclass(frozen=True, slots=True)
class BfclMemoryParams:
    """BFCL V4 memory: which of the backends kv, rec_sum and vector (its model is a package of its own) are asked."""

    backends: tuple[str, ...] = ("kv", "rec_sum")


@dataclass(frozen=True, slots=True)
class BfclWebParams:
    """BFCL V4 web search: `hosts` that pages may be fetched from ("sources": those that the benchmark's notes name;
    "*": every public one, as officially), and the `seconds` and `max_bytes` of one page."""

    hosts: tuple[str, ...] = ("sources",)
    seconds: float = ranged(20.0, 0.1, 600.0)
    max_bytes: int = ranged(2_000_000, 1)


@dataclass(frozen=True, slots=True)
class McpParams:
    """An MCP server over stdio: its command, and two of its own tools that the policy does not see.

    `reset` takes a task's state as its arguments and starts the world anew (without it every rollout starts a process);
    `state` tells the public state as JSON. `seconds`: a call may take; `servers`: how many may run at once.
    """

    command: tuple[str, ...] = ()
    reset: str = ""
    state: str = ""
    seconds: float = ranged(10.0, 0.1)
    servers: int = ranged(8, 2, 256)


@dataclass(frozen=True, slots=True)
class JudgeParams:
    """A judge model behind `url` (OpenAI-compatible, up to /v1). `key_env` names the variable that holds its key."""

    url: str = field(default="", metadata=URL)
    model: str = ""
    key_env: str = ""
    seconds: float = ranged(60.0, 0.1)
    cache: str = ".seal/judge"


@dataclass(frozen=True, slots=True)
class CustomParams:
    """Tools of the user's own: a Python `module` (my_pkg.my_tools, or my_pkg.my_tools:Class), or an `mcp` server.

    `tasks`: a YAML or Parquet file beside the module (default: tasks.yaml). `version`: raise it when the tools or the
    tasks change, and DVC runs what stands on them again. `seconds` of computing: a call may take. See docs/custom.md.
    """

    module: str = ""
    mcp: McpParams = field(default_factory=McpParams)
    tasks: str = "tasks.yaml"
    version: int = ranged(1, 0)
    seconds: float = ranged(1.0, 0.01, 600.0)
    max_steps_per_turn: int = ranged(10, 1, 1000)
    judge: JudgeParams = field(default_factory=JudgeParams)


@dataclass(frozen=True, slots=True)
class Tau2Params:
    """tau2-bench. `user`: scripted (does literally what it is told), endpoint (`model` at `url`, OpenAI-compatible, up
    to /v1, plays it; answers are kept under `cache`), or solo (nobody; the policy has both sides' tools; telecom's)."""

    domain: Literal["all", "retail", "airline", "telecom"] = "all"
    user: Literal["scripted", "endpoint", "solo"] = "scripted"
    url: str = field(default="", metadata=URL)
    model: str = ""
    temperature: float = ranged(0.0, 0.0, 2.0)
    cache: str = ".seal/users"


ENVS: Mapping[str, type] = {
    "shop": DomainParams,
    "compliance": DomainParams,
    "bfcl": BfclParams,
    "bfcl_memory": BfclMemoryParams,
    "bfcl_web": BfclWebParams,
    "custom": CustomParams,
    "tau2": Tau2Params,
}
