"""The next interface of a round: gather evidence, select, gate. One call for the stage and for experiments."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from seal.core.judged import Judged
from seal.core.seeds import RoundKey
from seal.core.types import Json
from seal.env.base import Environment
from seal.evolve.changes import Row
from seal.evolve.evidence import gather
from seal.evolve.gate import gate
from seal.evolve.rewording_model import rewriter
from seal.evolve.selection import Reader, evolve
from seal.interface.state import InterfaceState
from seal.policy import counter_of
from seal.policy.base import Policy
from seal.settings.rounds import Round


@dataclass(frozen=True, slots=True)
class Evolved:
    """interface_{t+1}, its change log, the estimated uplift of each old item, the gate's decisions and their cost."""

    state: InterfaceState
    changes: list[Row]
    uplifts: Sequence[Row]
    decisions: list[Row]
    spent: Mapping[str, int]


def next_interface(
    env: Environment,
    policy: Policy,
    parent: InterfaceState,
    collected: Sequence[Judged],
    profile: Sequence[Mapping[str, Json]],
    params: Round,
    key: RoundKey,
) -> Evolved:
    """Evolve `parent` from a round's collected rollouts and its profile.

    Only training tasks are read; the gate (params.evolve.gate.tasks > 0) plays dev tasks. `policy` plays for the gate
    alone, counts the tokens of cues and says which call format a hint may name.
    """
    evidence = gather(env, parent, collected, profile)
    reader = Reader(policy.format, counter_of(policy), rewriter(params.evolve.rewrite))
    state, changes = evolve(parent, evidence, params.evolve, key.id, reader, key.run_seed)
    state = replace(state, version=2 if params.evolve.withheld == "silent" else 1)
    gated = gate(env, policy, parent, state, params, key)
    return Evolved(gated.state, changes + gated.changes, evidence.uplifts, gated.decisions, gated.spent)
