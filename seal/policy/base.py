"""What a policy is. Token policies also have a codec, the only place where messages become ids."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from seal.core.types import Result, Task, ToolDoc
from seal.settings.policies import ServeParams


@dataclass(frozen=True, slots=True)
class Action:
    """One policy output. `ids` and `logprobs` are empty for policies without weights here.

    `finish`: "stop", "length" (token cap reached) or "overflow" (the context is full; nothing was sampled).
    """

    text: str
    ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    finish: str = "stop"


@dataclass(slots=True)
class Observation:
    """What the policy is asked to answer: the episode so far, as nouns (scripted policies) and as ids (the rest)."""

    task: Task
    sample: int
    seed: int
    turn: int
    step: int  # within the turn
    last_results: tuple[Result, ...] = ()
    ids: list[int] = field(default_factory=list)  # the full context, append-only
    memory: dict[str, Any] = field(default_factory=dict)  # the policy's own, the same one for all steps of an episode


@dataclass(frozen=True, slots=True)
class Limits:
    """Named limits, in tokens: of one policy output, and of the whole context. Reaching one is a stop reason."""

    max_action_tokens: int = 32
    context: int = 512


class Codec(Protocol):
    """Turns what the environment says into ids. Segments are append-only: each ends where the policy is to go on."""

    format: str  # a format name of seal.tools.parse

    def prompt(self, docs: Sequence[ToolDoc], hints: Sequence[str]) -> list[int]:
        """System part: tool docs with their notes, guidance hints."""
        ...

    def user(self, message: str, revealed: Sequence[ToolDoc]) -> list[int]:
        """A user turn (with newly revealed tools), up to and including the marker after which the policy speaks."""
        ...

    def results(self, shown: Sequence[str]) -> list[int]:
        """Tool results (or parse errors) of one step, up to and including the marker after which the policy speaks."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Text of sampled ids, without end markers."""
        ...

    def encode_action(self, text: str) -> list[int]:
        """Ids of a policy output, with its end marker: for demonstrations."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a cue, for the interface's budget; words where the model's tokens are words, or not known."""
        ...


class Policy:
    """What answers observations.

    hash       of the weights and everything that decides the output; "scripted:<kind>" without weights
    format     the call format its text is parsed in
    model, tokenizer  of a policy whose weights are here; None elsewhere
    serve      the server that samples for it, where there is one
    """

    name: str
    hash: str
    format: str
    codec: Codec | None = None
    model: Any = None
    tokenizer: Any = None
    serve: ServeParams = ServeParams()

    def act(self, observations: Sequence[Observation], temperature: float, limits: Limits) -> list[Action]:
        """One output for each observation. Sampling depends on the observation's seed, turn and step alone."""
        raise NotImplementedError  # every policy has its own

    def live_episodes(self, limits: Limits) -> int | None:
        """How many episodes may be played at once; None: any number."""
        return None

    def save(self, path: Path) -> None:
        """Write the policy directory; nothing for a policy that never changes."""
