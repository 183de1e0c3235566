"""What a round gives evolution to work with: how its rollouts failed, and what a cue may quote."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from seal.core.judged import Judged
from seal.core.types import Fact, Json, Order, Task, ToolDoc
from seal.env.base import Environment
from seal.evolve.orders import executions_of, find_orders
from seal.evolve.uplift import uplifts
from seal.interface.state import InterfaceState


@dataclass(frozen=True, slots=True)
class Evidence:
    """Of one round, from training tasks alone.

    profile: rows of seal.diagnose.profile. uplifts: rows of seal.evolve.uplift, of the parent's active items.
    facts, orders: what cues may quote; docs: bare docs, which they may quote too. errors: count by error kind; None
    where it is not known which were seen. tasks: whose gold, state and words cues must not quote (the guard refuses
    what has no source either way; tasks let it say what leaked).
    """

    profile: Sequence[Mapping[str, Json]] = ()
    facts: Sequence[Fact] = ()
    orders: Sequence[Order] = ()
    uplifts: Sequence[Mapping[str, Json]] = ()
    errors: Mapping[str, int] | None = None
    docs: Sequence[ToolDoc] = ()
    tasks: Sequence[Task] = ()


def gather(
    env: Environment, parent: InterfaceState, collected: Sequence[Judged], profile: Sequence[Mapping[str, Json]]
) -> Evidence:
    """The evidence of rollouts that were collected under `parent` (or bare), and of their profile."""
    tasks = [task for task in env.tasks() if task.split == "train"]
    usable = [j for j in collected if j.usable]
    toolsets = {task.task_id: task.toolset for task in tasks}
    return Evidence(
        profile,
        facts=env.facts(sorted({tool for tools in toolsets.values() for tool in tools})),
        orders=find_orders(executions_of(j.rollout) for j in usable),
        uplifts=uplifts(usable, parent, toolsets, {task.task_id: task.category for task in tasks}),
        errors=_errors(usable),
        docs=_docs(env, tasks),
        tasks=tasks,
    )


def _docs(env: Environment, tasks: Sequence[Task]) -> list[ToolDoc]:
    """Bare docs of every tool of the tasks, by name."""
    docs: dict[str, ToolDoc] = {}
    for task in tasks:
        if not docs.keys() >= set(task.toolset):
            docs.update((doc.name, doc) for doc in env.docs(task, len(task.turns) - 1))
    return [docs[name] for name in sorted(docs)]


def _errors(judged: Sequence[Judged]) -> Counter[str]:
    """How often each error kind was seen, of calls and of texts that are none."""
    steps = [step for j in judged for step in j.rollout.steps]
    seen = Counter(result.error_kind for step in steps for result in step.results if result.error_kind)
    return seen + Counter(error.kind for step in steps for error in step.errors)
