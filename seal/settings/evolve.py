"""What a round makes of its failures: how they are labelled, and how the interface changes because of them."""

from typing import Annotated, Literal

from seal.core.labels import DEFAULT_PRIORITY
from seal.core.types import CUE_KINDS
from seal.settings.servers import ModelServer
from seal.settings.typed import Absent, Settings, ranged

CueKind = Literal["plain", "all", *CUE_KINDS]  # groups of operators (see seal.evolve.selection), then operators


class DiagnoseParams(Settings):
    """By which of its labels a turn is known when it has several."""

    priority: tuple[str, ...] | Literal["fixed", "frequency", "learned"] = tuple(map(str, DEFAULT_PRIORITY))
    """An order, first wins, or the name of one: fixed (the default order), or drawn from the collected rollouts by
    frequency, or learned (see seal.diagnose.label_worth)."""


class GateParams(Settings):
    """Paired rollouts that new cues must not hurt."""

    tasks: int = ranged(0, 0)
    "On how many probe tasks (0: there is no gate)."


class RewriteParams(ModelServer):
    """A model that rewords new cues."""

    cache: str = ".seal/rewrites"
    "The folder that keeps the answers."


class EvolveParams(Settings):
    """How the interface changes from one round to the next."""

    interface: Literal["evolved", "kept", "none", "static", "published", "random"] = "evolved"
    """evolved from the failures; kept: the parent's as it is; none; static: every hidden fact at once; published: the
    paper's static marks; random: true cues at wrong places."""
    token_budget: int = ranged(400, 0)
    "Most of all cues together, in tokens of the policy (hf) or in words."
    max_new: int = ranged(12, 0)
    "Most new cues of a round."
    min_support: int = ranged(2, 1)
    "Failing turns that a new cue needs at least."
    min_rate: float = ranged(0.0, 0.0, 1.0)
    "Share of turns that must fail in this way before there is a new cue."
    retire_rate: float = ranged(0.0, 0.0, 1.0)
    "A cue's failure is over where its share of turns is at this or below."
    retire_patience: int = ranged(2, 1)
    "For so many rounds a cue's failure is over before the cue retires."
    retire_uplift: Annotated[float, Absent(0.0)] = ranged(0.0, -1.0, 1.0)
    "A cue retires, too, when the interval of its uplift lies below this (-1: never)."
    kinds: Annotated[tuple[CueKind, ...], Absent(("plain",))] = ("plain",)
    "Which cues are written: plain (short fixed forms), all, or operators by name."
    rewrite: Annotated[RewriteParams, Absent(RewriteParams())] = RewriteParams()
    "Who rewords new cues."
    gate: GateParams = GateParams()
    "Whether new cues are tried before they are taken."
    withheld: Annotated[Literal["silent", "named"], Absent("named")] = "silent"
    """silent leaves out what names a tool before its task reveals it; named, as it was before this could be chosen,
    shows it."""
