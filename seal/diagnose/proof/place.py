"""A place for a fault in a gold program, and what is known about it without the diagnosis."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from seal.core.types import Call, Json, Task
from seal.env.base import Environment
from seal.policy.faults import TurnScript


@dataclass(frozen=True)
class Place:
    """One gold call (`index`) of a turn; `format` is what the policy speaks, `rng` where its draws come from."""

    env: Environment
    task: Task
    turn: int
    index: int
    format: str
    rng: random.Random

    @property
    def gold(self) -> tuple[Call, ...]:
        return self.task.turns[self.turn].gold

    @property
    def call(self) -> Call:
        return self.gold[self.index]

    @property
    def past(self) -> list[Call]:
        return [call for turn in self.task.turns[: self.turn] for call in turn.gold]

    @cached_property
    def facts(self) -> Mapping[tuple[str, str, str], Json]:
        """(tool, parameter, kind) -> what the executor enforces."""
        return {(f.tool, f.param, f.kind): f.value for f in self.env.facts(self.task.toolset)}

    @cached_property
    def docs(self) -> Mapping[str, Mapping[str, bool]]:
        """Tool -> {parameter: required}, of every tool the task ever shows."""
        last = len(self.task.turns) - 1
        return {doc.name: {p.name: p.required for p in doc.params} for doc in self.env.docs(self.task, last)}

    @cached_property
    def world(self) -> frozenset[str]:
        """Every key and scalar of the world before the first turn, as text."""
        return frozenset(_scalars(self.task.initial_state))

    def bare(self, call: Call, name: str) -> Json:
        """The value without the prefix that its tool asks for."""
        value, prefix = call.arguments[name], self.prefix(call.name, name)
        return value.removeprefix(prefix) if isinstance(value, str) else value

    def prefix(self, tool: str, name: str) -> str:
        prefix = self.facts.get((tool, name, "format"), "")
        return prefix if isinstance(prefix, str) else ""

    def is_said(self, value: Json) -> bool:
        """Whether the user gave it, word for word."""
        words = " ".join(turn.message for turn in self.task.turns[: self.turn + 1])
        return not isinstance(value, bool | list | dict) and f" {value} " in f" {words} ".translate(_BREAKS)

    def with_value(self, name: str, value: Json) -> TurnScript:
        return ((Call(self.call.name, {**self.call.arguments, name: value}),),)

    def pick(self, options: Sequence) -> object | None:
        return self.rng.choice(options) if options else None


_BREAKS = str.maketrans(dict.fromkeys("\"'?!();\n", " ") | {",": " , "})


def _scalars(value: Json) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _scalars(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _scalars(item)
    elif not isinstance(value, bool | float) and value is not None:
        yield str(value)
