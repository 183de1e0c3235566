"""The next interface of a round: mine, weigh, evolve, gate. One call for the stage and for experiments."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from seal.core.judged import Judged
from seal.core.types import Json, ToolDoc
from seal.env.base import Environment
from seal.evolve.gate import gate
from seal.evolve.orders import executions_of_rollouts, find_orders
from seal.evolve.rewording_model import rewriter
from seal.evolve.step import evolve
from seal.evolve.uplift import uplifts
from seal.interface.state import InterfaceState
from seal.policy import counter_of
from seal.policy.base import Limits, Policy

Row = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Evolved:
    """interface_{t+1}, its change log, the estimated uplift of each old item, the gate's decisions and their cost."""

    state: InterfaceState
    changes: list[Row]
    uplifts: list[Row]
    decisions: list[Row]
    spent: Mapping[str, int]


def next_interface(
    env: Environment,
    policy: Policy,
    parent: InterfaceState,
    collected: Sequence[Judged],
    profile: Sequence[Mapping[str, Json]],
    params: Any,
    round_id: str,
    depth: int,
    run_seed: int,
) -> Evolved:
    """Evolve `parent` from a round's collected rollouts and its profile. `params`: seal.settings.params.Round.

    Only training tasks are read; the gate (params.evolve.gate.tasks > 0) plays dev tasks. `policy` plays for the gate
    alone, counts the tokens of cues and says which call format a hint may name.
    """
    tasks = [task for task in env.tasks() if task.split == "train"]
    usable = [j for j in collected if j.usable]
    toolsets = {task.task_id: task.toolset for task in tasks}
    played = [
        {
            "task_id": j.rollout.task_id,
            "mode": j.rollout.mode,
            "dropped": j.rollout.dropped,
            "success": j.success,
        }
        for j in usable
    ]
    worth = uplifts(played, parent, toolsets, categories={task.task_id: task.category for task in tasks})
    state, changes = evolve(
        parent,
        profile,
        env.facts(sorted({tool for tools in toolsets.values() for tool in tools})),
        find_orders(executions_of_rollouts(j.rollout for j in usable)),
        params.evolve,
        round_id,
        call_format=policy.format,
        seed=run_seed,
        docs=_docs(env),
        tasks=tasks,
        uplifts=worth,
        errors=_errors(usable),
        count=counter_of(policy),
        rewrite=rewriter(params.evolve.rewrite),
    )
    state = replace(state, version=2 if params.evolve.withheld == "silent" else 1)
    gated = gate(
        env,
        policy,
        parent,
        state,
        params.evolve.gate.tasks,
        mode=params.collect.mode,
        temperature=params.collect.temperature,
        limits=Limits(params.collect.max_action_tokens, params.collect.context),
        priority=params.diagnose.priority,
        round_id=round_id,
        depth=depth,
        run_seed=run_seed,
    )
    return Evolved(gated.state, changes + gated.changes, worth, gated.decisions, gated.spent)


def _docs(env: Environment) -> list[ToolDoc]:
    """Bare docs of every tool of the training tasks, by name."""
    docs: dict[str, ToolDoc] = {}
    for task in env.tasks():
        if task.split == "train" and not docs.keys() >= set(task.toolset):
            docs.update((doc.name, doc) for doc in env.docs(task, len(task.turns) - 1))
    return [docs[name] for name in sorted(docs)]


def _errors(judged: Sequence[Judged]) -> Counter[str]:
    """How often each error kind was seen, of calls and of texts that are none."""
    steps = [step for j in judged for step in j.rollout.steps]
    seen = Counter(result.error_kind for step in steps for result in step.results if result.error_kind)
    return seen + Counter(error.kind for step in steps for error in step.errors)
