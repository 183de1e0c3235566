"""BFCL V3 multi-turn: 800 tasks of 200 scenarios in four categories, run as the official harness runs them."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from seal.core.types import Fact, Json, Rollout, Task, ToolDoc
from seal.env.base import Environment
from seal.env.bfcl.data import load_docs, load_tasks
from seal.env.bfcl.gold_reuse import ReusedProgram
from seal.env.bfcl.package import PACKAGE
from seal.env.bfcl.session import BfclSession


class BfclEnv(Environment):
    """The Environment over the installed bfcl_eval package. Raises DependencyError where that is missing."""

    name = "bfcl"
    max_steps_per_turn = 21  # the official loop breaks when the count exceeds 20
    judges_abstention = False

    def __init__(self) -> None:
        self.version = PACKAGE.version()

    @cached_property
    def _documents(self) -> tuple[dict[str, dict[str, ToolDoc]], dict[str, tuple[Fact, ...]]]:
        return load_docs()

    @cached_property
    def _docs(self) -> dict[str, ToolDoc]:
        return {name: doc for docs in self._documents[0].values() for name, doc in docs.items()}

    def make_tasks(self) -> list[Task]:
        return load_tasks(self._documents[0])

    def documents(self, task: Task) -> Mapping[str, ToolDoc]:
        return self._docs

    def facts(self, tools: Sequence[str]) -> tuple[Fact, ...]:
        wanted = set(tools)
        return tuple(fact for name, facts in self._documents[1].items() if name in wanted for fact in facts)

    def open(self, task: Task) -> BfclSession:
        state = task.initial_state
        return BfclSession(state["classes"], state["config"], state["long_context"])

    def known_program(self, task: Task, turns: Sequence[Any]) -> ReusedProgram:
        return ReusedProgram(task.initial_state, turns)

    def official(self, task: Task, rollout: Rollout, turns: int) -> dict[str, Json]:
        from seal.env.bfcl.checker import official_verdict

        calls = [[step.calls for step in rollout.steps if step.turn == turn] for turn in range(turns)]
        return official_verdict(task, calls)
