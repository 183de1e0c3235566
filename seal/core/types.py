"""The nouns every room shares. All are immutable; none does anything.

task > turn (one user message) > step (one policy output) > call. A *rollout* is one played task.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Json = Any
Split = Literal["train", "dev", "test"]
Phase = Literal["collect", "train", "evaluate"]
Mode = Literal["off", "full", "feedback_only", "docs_only"]
Credit = Literal["rollout", "turn"]  # what an advantage compares: whole rollouts, or each user turn among its like


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call with literal JSON arguments, positionals already bound to names."""

    name: str
    arguments: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class CallError:
    """Text that looks like a call but is none. `kind`: syntax, truncated, not_literal, not_object, unknown_tool, ..."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True)
class Parsed:
    """What one policy output says. `end_of_turn`: the policy hands back to the user (no call is to run).

    `repairs`: names of what lenient parsing mended (see seal.tools.repair); strict mends nothing.
    """

    calls: tuple[Call, ...] = ()
    errors: tuple[CallError, ...] = ()
    end_of_turn: bool = False
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Result:
    """What a call returned. `raw`: the tool's own text. `shown`: what the policy read (raw, or raw plus recovery text).

    `error_kind` is "" for success, else one of ERROR_KINDS.
    """

    raw: str
    shown: str
    error_kind: str = ""


ERROR_KINDS = (
    "unknown_tool",  # no such tool in the task
    "missing_argument",
    "unexpected_argument",
    "wrong_type",
    "invalid_value",  # enumeration or format
    "not_found",  # no such entity
    "precondition",  # order of operations, wrong state of the entity
    "permission",
    "timeout",
    "other",
)


REFUSALS = ("precondition", "permission")  # error kinds that ask for another tool first

# What a cue can be: names of seal.interface.wording, most telling first (the order breaks ties).
CUE_KINDS = (
    *("enum", "format", "needs", "role", "returns", "required", "type", "purpose", "range", "unit", "default"),
    *("sibling", "example", "order", "recover", "recover_order", "recover_any", "call_format", "guidance"),
)


@dataclass(frozen=True, slots=True)
class Param:
    """One documented parameter. `type` is a JSON-schema type name."""

    name: str
    type: str = "string"
    required: bool = True
    description: str = ""
    enum: tuple[Json, ...] = ()
    default: Json = None


@dataclass(frozen=True, slots=True)
class Note:
    """Interface text on a tool (`param` "") or on one of its parameters. `item`: the interface item it renders."""

    param: str
    text: str
    item: str = ""


@dataclass(frozen=True, slots=True)
class ToolDoc:
    """What the policy sees of a tool. `notes`: rules that its bare doc tells; the interface adds to them."""

    name: str
    description: str
    params: tuple[Param, ...] = ()
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing the executor enforces (or the docs tell): the only source a cue may quote.

    kind      param?  value
    required  yes     bool
    type      yes     JSON-schema type name
    enum      yes     {user word: code} or [allowed value, ...]
    format    yes     prefix or pattern, as text
    needs     no      [tool that must have succeeded before, ...]
    role      no      [tool that grants the permission, ...]
    returns   no      [field the tool returns, ...]
    purpose   no      what the tool is for, as text
    `documented` says whether the bare docs already tell it.
    """

    tool: str
    param: str
    kind: str
    value: Json
    documented: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """An order of operations learned from executions: `tool` needs `prerequisite`.

    support: how often `tool` was refused, then `prerequisite` succeeded, then `tool` did, within one rollout.
    against: rollouts in which `tool` succeeded although `prerequisite` never had.
    confidence: lower end of the 90% Wilson interval of support / (support + against), in [0, 1).
    """

    tool: str
    prerequisite: str
    error_kind: str
    support: int
    against: int
    confidence: float


@dataclass(frozen=True, slots=True)
class UserTurn:
    """A scripted user message and the gold calls that serve it (empty: the policy should abstain or ask)."""

    message: str
    gold: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Task:
    """One multi-turn task. `scenario_id` never crosses a split. `holdout` maps a tool to the turn that reveals it."""

    task_id: str
    env: str
    category: str
    scenario_id: str
    split: Split
    turns: tuple[UserTurn, ...]
    initial_state: Mapping[str, Json]
    toolset: tuple[str, ...]
    holdout: Mapping[str, int] = field(default_factory=dict)
    known_bad: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One policy output inside a turn: its text, what parsed, what ran. `results` aligns with `calls`."""

    turn: int
    step: int
    text: str
    calls: tuple[Call, ...] = ()
    errors: tuple[CallError, ...] = ()
    results: tuple[Result, ...] = ()


@dataclass(frozen=True, slots=True)
class Tokens:
    """The token side of a rollout of a policy with weights; all completion lists have one length T.

    prompt_ids          everything before the first sampled token, as shown
    completion_ids (T)  sampled tokens and the environment's tokens between them, as shown
    loss_mask (T)       1 = sampled by this policy
    logprobs (T)        of the sampled tokens under the sampler, 0 elsewhere
    turn_of_token (T)   user turn a token belongs to
    interface_mask (T)  1 = sampled after interface text that is not explained by docs (a recovery text)
    bare_prompt_ids, bare_completion_ids, bare_loss_mask: the same rollout with what the interface added to the docs
    taken out; the sampled tokens are the same, in the same order.
    """

    prompt_ids: tuple[int, ...] = ()
    completion_ids: tuple[int, ...] = ()
    loss_mask: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    turn_of_token: tuple[int, ...] = ()
    interface_mask: tuple[int, ...] = ()
    bare_prompt_ids: tuple[int, ...] = ()
    bare_completion_ids: tuple[int, ...] = ()
    bare_loss_mask: tuple[int, ...] = ()


STOP_REASONS = (
    "finished",  # every user turn was handed back
    "step_limit",  # a turn used up its steps (the conversation ends)
    "turn_token_limit",  # one policy output reached its token cap
    "context_overflow",  # prompt and cap do not fit the model's context
    "env_error",  # the environment itself failed: not the policy's fault
)


@dataclass(frozen=True, slots=True)
class Rollout:
    """One played task. `mode` and `dropped` say under which interface: `dropped` is an item left out at random."""

    rollout_id: str
    task_id: str
    sample: int
    seed: int
    mode: Mode
    policy_hash: str
    interface_hash: str
    steps: tuple[Step, ...]
    stop_reason: str
    dropped: str = ""
    tokens: Tokens = Tokens()

    @property
    def turns_reached(self) -> int:
        """User turns in which the policy (or the gold prefix) said something."""
        return max((step.turn for step in self.steps), default=-1) + 1

    def calls_by_turn(self, n_turns: int) -> list[list[Call]]:
        """All calls of each user turn in order, steps flattened; turns never reached are empty."""
        by_turn: list[list[Call]] = [[] for _ in range(n_turns)]
        for step in self.steps:
            by_turn[step.turn].extend(step.calls)
        return by_turn


@dataclass(frozen=True, slots=True)
class Verdict:
    """One user turn against the gold program. `valid` makes success; evidence: digests, first difference."""

    turn: int
    state_ok: bool
    response_ok: bool
    valid: bool
    confidence: float = 1.0
    evidence: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One label of one user turn. `root` is false for a consequence of an earlier failing turn. `step` -1: all."""

    turn: int
    label: str
    detail: str = ""
    primary: bool = False
    root: bool = True
    tool: str = ""
    parameter: str = ""
    step: int = -1
    evidence: Mapping[str, Json] = field(default_factory=dict)
    confidence: float = 1.0
