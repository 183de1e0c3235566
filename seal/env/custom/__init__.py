"""Bring your own tools: a Python module or an MCP server as an environment, tasks from a file. See docs/custom.md."""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from seal.core.errors import ParamError, RoundError
from seal.core.types import Fact, Json, Task, ToolDoc
from seal.env.base import Environment, Session
from seal.env.custom.functions import PythonTools
from seal.env.custom.server import McpTools
from seal.env.custom.source import Source
from seal.env.custom.tasks import load_tasks
from seal.settings.envs import CustomParams
from seal.settings.typed import read
from seal.tools.docs import facts_of
from seal.tools.parse import call_text
from seal.workspace.lineage import find_root

OWN_GRADERS = ("schema", "judge")  # names a turn's `check` may have beside those of functions


def named(variant: str) -> dict[str, str]:
    """The options that `custom:<variant>` is short for: a module."""
    return {"module": variant}


class CustomEnv(Environment):
    """The environment of the user's tools. `options`: CustomParams. Raises ParamError for whatever does not fit."""

    name = "custom"
    judges_abstention = True

    def __init__(self, **options: Any):
        params = read(CustomParams, options, "envs.custom")
        if bool(params.module) == bool(params.mcp.command):
            value = "both" if params.module else "neither"
            raise ParamError("envs.custom", f"{value} of module and mcp.command", "give one: module: my_pkg.my_tools")
        self._root, self._params = workspace(), params
        self.version, self.max_steps_per_turn = str(params.version), params.max_steps_per_turn
        self.judge = params.judge.model_copy(update={"cache": str(self._root / params.judge.cache)})

    @cached_property
    def tools(self) -> PythonTools | McpTools:
        if self._params.module:
            return PythonTools(self._params.module, self._params.seconds, self._root)
        return McpTools(self._params.mcp, self._root)

    @property
    def live_sessions(self) -> int | None:
        """How many sessions may be played at once; None: any number."""
        return self._params.mcp.servers if self._params.mcp.command else None

    @cached_property
    def _docs(self) -> dict[str, ToolDoc]:
        return {doc.name: doc for doc in self.tools.docs}

    def make_tasks(self) -> list[Task]:
        tasks = load_tasks(self.tools.folder / self._params.tasks, self.tools.docs, self.tools.digest)
        for task in tasks:
            for name in filter(None, self.checks(task)):
                self._check_grader(task, name)
        return tasks

    def documents(self, task: Task) -> Mapping[str, ToolDoc]:
        return self._docs

    def facts(self, tools: Sequence[str]) -> tuple[Fact, ...]:
        return tuple(fact for name, doc in self._docs.items() if name in set(tools) for fact in facts_of(doc))

    def open(self, task: Task) -> Session:
        try:
            return self.tools.open(task.initial_state["state"])
        except ParamError as error:
            raise ParamError(f"task {task.task_id}, {error.thing}", error.value, error.remedy) from error

    def prove(self) -> None:
        """Run every gold program, twice. Raises ParamError for the first call that fails or differs."""
        has_state = [self._proven(task) for task in self.tasks()]
        if not any(has_state) and any("" in self.checks(task) for task in self.tasks()):
            note = "these tools have no public state: turns with gold are judged by what calls return (docs/custom.md)"
            print(f"note: envs.custom: {note}", file=sys.stderr)

    def _proven(self, task: Task) -> bool:
        """Whether there ever was any public state."""
        (first, has_state), (second, _) = (self._gold_run(task) for _ in range(2))
        for place, one, two in zip(first, first.values(), second.values(), strict=True):
            if one != two:
                remedy = "tools must be deterministic: no clock, no randomness without a seed from the state"
                raise ParamError(f"task {task.task_id}, {place}", f"{one!r}, the second time {two!r}"[:300], remedy)
        return has_state

    def _gold_run(self, task: Task) -> tuple[dict[str, Json], bool]:
        """What every gold call gives, and the state after each turn; whether it ever was not empty."""
        session, found = self.open(task), {}
        has_state = bool(session.state())
        for turn, entry in enumerate(task.turns):
            for i, call in enumerate(entry.gold):
                place = f"turn {turn}, gold call {i}"
                result = session.call(call)
                if result.error_kind:
                    value = f"{call_text(call)}: {result.raw} ({result.error_kind})"
                    remedy = "mend the call, the task's state or the tool"
                    raise ParamError(f"task {task.task_id}, {place}", value, remedy)
                found[place] = result.raw
                has_state = has_state or bool(session.state())
            found[f"state after turn {turn}"] = session.state()
        return found, has_state

    def checks(self, task: Task) -> tuple[str, ...]:
        """Who judges each turn: "" the gold run, "schema", "judge", or a checker function's name."""
        return tuple(task.initial_state["checks"])

    def checker(self, name: str) -> Callable[[Any], Any]:
        """A checker function, of the tools' module or `module:name`. Raises ParamError."""
        module, _, function = name.rpartition(":")
        own = self.tools.function if isinstance(self.tools, PythonTools) else lambda name: None
        found = Source(module, self._root).function(function) if module else own(function)
        if found is None:
            raise ParamError("checker", name, "name a function of the tools' module, or write module:function")
        return found

    def _check_grader(self, task: Task, name: str) -> None:
        if name == "judge" and not (self.judge.url and self.judge.model):
            value = f"task {task.task_id} asks a judge, and there is none"
            raise ParamError("envs.custom.judge", value, "give its url and model")
        if name not in OWN_GRADERS:
            self.checker(name)


def workspace() -> Path:
    """The folder that dotted names and relative paths start from: the workspace's, or the current one."""
    try:
        return find_root()
    except RoundError:
        return Path.cwd()
