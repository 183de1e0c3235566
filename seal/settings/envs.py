"""What an environment takes in params.yaml."""

from collections.abc import Mapping
from typing import Annotated, Literal

from seal.settings.servers import ModelServer, OptionalUrl
from seal.settings.typed import Absent, Settings, ranged


class DomainParams(Settings):
    """A built-in domain."""

    seed: int = ranged(0, 0)
    "Seed of the generator of tasks."
    train: int = ranged(60, 1)
    "Scenarios to learn from; each has several tasks."
    dev: int = ranged(15, 0)
    "Scenarios that decide which round is best."
    test: int = ranged(50, 1)
    "Held-out scenarios."
    told: Annotated[float, Absent(0.0)] = ranged(0.0, 0.0, 1.0)
    "Share of the hidden facts that the bare docs tell after all; a higher share tells those of a lower one, too."


class BfclParams(Settings):
    """BFCL V3 multi-turn has nothing to set: its tasks and its split are pinned."""


class BfclMemoryParams(Settings):
    """BFCL V4 memory."""

    backends: tuple[str, ...] = ("kv", "rec_sum")
    "Which of kv, rec_sum and vector (its model is a package of its own) are asked."


class BfclWebParams(Settings):
    """BFCL V4 web search."""

    hosts: tuple[str, ...] = ("sources",)
    """Hosts that pages may be fetched from; sources: those that the benchmark's notes name; *: every public one, as
    officially."""
    seconds: float = ranged(20.0, 0.1, 600.0)
    "Seconds that fetching one page may take."
    max_bytes: int = ranged(2_000_000, 1)
    "Most bytes of one page."


class McpParams(Settings):
    """An MCP server over stdio."""

    command: tuple[str, ...] = ()
    "What starts it: a program and its arguments."
    reset: str = ""
    """A tool of its own that the policy does not see: takes a task's state as its arguments and starts the world anew
    (without it every rollout starts a process)."""
    state: str = ""
    "A tool of its own that the policy does not see: tells the public state as JSON."
    seconds: float = ranged(10.0, 0.1)
    "Seconds that a call may take."
    servers: int = ranged(8, 2, 256)
    "How many may run at once."


class JudgeParams(ModelServer):
    """A model that judges turns."""

    cache: str = ".seal/judge"
    "The folder that keeps the answers."


class CustomParams(Settings):
    """Tools of the user's own: a Python module, or an MCP server. See docs/custom.md."""

    module: str = ""
    "my_pkg.my_tools, or my_pkg.my_tools:Class."
    mcp: McpParams = McpParams()
    "The server, instead of a module."
    tasks: str = "tasks.yaml"
    "A YAML or Parquet file beside the module."
    version: int = ranged(1, 0)
    "Raise it when the tools or the tasks change, and DVC runs again what stands on them."
    seconds: float = ranged(1.0, 0.01, 600.0)
    "Seconds of computing that a call may take."
    max_steps_per_turn: int = ranged(10, 1, 1000)
    "Outputs of the policy in one user turn."
    judge: JudgeParams = JudgeParams()
    "Who judges the turns whose `check` is judge."


class Tau2Params(Settings):
    """tau2-bench."""

    domain: Literal["all", "retail", "airline", "telecom"] = "all"
    "Which of its domains."
    user: Literal["scripted", "endpoint", "solo"] = "scripted"
    """Who plays the user: a script that does literally what it is told, a model behind an endpoint, or nobody (solo:
    the policy has both sides' tools; of telecom)."""
    url: OptionalUrl = ""
    "The server of the user's model, OpenAI-compatible, up to /v1."
    model: str = ""
    "The model's name on that server."
    temperature: float = ranged(0.0, 0.0, 2.0)
    "The user model's; 0: always the most probable token."
    cache: str = ".seal/users"
    "The folder that keeps the answers."


ENVS: Mapping[str, type[Settings]] = {
    "shop": DomainParams,
    "compliance": DomainParams,
    "bfcl": BfclParams,
    "bfcl_memory": BfclMemoryParams,
    "bfcl_web": BfclWebParams,
    "custom": CustomParams,
    "tau2": Tau2Params,
}
