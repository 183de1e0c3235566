"""Sessions that start along a program whose outcome is known, and run only what leaves it.

The classes of a task share nothing (seal.env.bfcl.instances), so what one of them does and tells hangs on its own calls
alone. As long as these are the program's, from the first on and one by one, results and state are the program's too.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from seal.core.types import Call, Json
from seal.env.base import Difference, KnownProgram
from seal.env.bfcl import bounds
from seal.env.bfcl.dispatch import FAILED, FORBIDDEN
from seal.env.bfcl.instances import instances
from seal.env.bfcl.session import RAISED, BfclSession, owners
from seal.env.bfcl.values import CUT
from seal.env.limit import TimedOut

LEFT = -1  # the place of a class whose calls are no longer the program's


@dataclass(frozen=True, slots=True)
class ClassRun:
    """The program's calls of one class with their results, and the public state after the first n of them.

    `states` has the n at which a turn ends. `keys` are the calls as they are recognised: name and worded arguments,
    values of equal types included.
    """

    calls: tuple[Call, ...]
    keys: tuple[tuple[str, str], ...]
    results: tuple[str, ...]
    states: Mapping[int, Mapping[str, Json]]


@dataclass(frozen=True, slots=True)
class TurnStart:
    """Where a turn of the program starts: calls run so far and characters returned, of all and of each class's."""

    calls: int
    returned: int
    places: Mapping[str, int]


class ReusedProgram(KnownProgram):
    """A program's calls of every class, with what they did. `turns`: GoldTurns of seal.verify.gold."""

    def __init__(self, scenario: Mapping[str, Json], turns: Sequence[Any]):
        self.config, self.long_context = scenario["config"], bool(scenario["long_context"])
        self.owners = owner = owners(tuple(scenario["classes"]))
        run: dict[str, list[tuple[Call, tuple[str, str], str]]] = {name: [] for name in scenario["classes"]}
        states: dict[str, dict[int, Mapping[str, Json]]] = {name: {0: turns[0].before[name]} for name in run}
        self._starts = [TurnStart(0, 0, dict.fromkeys(run, 0))]
        for turn in turns:
            for made in zip(turn.calls, turn.keys, turn.results, strict=True):
                if (tool := made[0].name) in owner and tool not in FORBIDDEN:
                    run[owner[tool]].append(made)
            for name, held in turn.state.items():
                states[name][len(run[name])] = held
            last, places = self._starts[-1], {name: len(made) for name, made in run.items()}
            returned = last.returned + sum(map(len, turn.results))
            self._starts.append(TurnStart(last.calls + len(turn.calls), returned, places))
        self.runs = {name: ClassRun(*(tuple(zip(*made)) or ((), (), ())), states[name]) for name, made in run.items()}

    def session(self, turn: int) -> "ReusingSession":
        """A session of its own as the program leaves it before a turn."""
        return ReusingSession(self, self._starts[turn])


class ReusingSession(BfclSession):
    """A session that tells and compares as any other, but makes and runs a class only once that must be done."""

    def __init__(self, program: ReusedProgram, start: TurnStart):
        super().__init__((), {}, program.long_context)
        self._owners, self._config, self._runs = program.owners, program.config, program.runs
        self._places = dict(start.places)  # calls of a class that were the program's; LEFT once one was not
        self._done: dict[str, int] = {}  # how many of these were run
        self._calls, self._returned = start.calls, start.returned

    def state(self) -> dict[str, Json]:
        for name, place in self._places.items():
            if place != LEFT:
                self._catch_up(name)
        return super().state()

    def state_since(self, before: Mapping[str, Mapping[str, Json]]) -> dict[str, Json]:
        self.state()
        return super().state_since(before)

    def _first_difference(self, name: str, expected: Mapping[str, Json]) -> Difference | None:
        place = self._places[name]
        held = self._runs[name].states.get(place)
        if held is expected:
            return None
        if held is not None:
            differing = (key for key in sorted(expected) if held.get(key, CUT) != expected[key])
            return next(((key, held.get(key, CUT), expected[key]) for key in differing), None)
        if place != LEFT:
            self._catch_up(name)
        return super()._first_difference(name, expected)

    def _run(self, tool: str, arguments: Mapping[str, Json]) -> tuple[str, str | None]:
        name = self._owners.get(tool)
        place = self._places.get(name, LEFT)
        if place != LEFT:
            known = self._runs[name]
            if place < len(known.keys) and known.keys[place] == (tool, repr(arguments)) and not self._exhausted():
                self._places[name] = place + 1
                raw = known.results[place]
                return raw, RAISED if raw.startswith(FAILED) else None
        return super()._run(tool, arguments)

    def _executed(self, name: str, tool: str, arguments: Mapping[str, Json]) -> tuple[str, str | None]:
        if self._places[name] != LEFT:
            self._catch_up(name)
            self._places[name] = LEFT
        return super()._executed(name, tool, arguments)

    def _catch_up(self, name: str) -> None:
        """Run the calls whose known results were given."""
        if name not in self._parts:
            self._parts |= instances((name,), self._config, self._long_context)
        place = self._places[name]
        for call in self._runs[name].calls[self._done.get(name, 0) : place]:
            if not bounds.refusal(call.name, call.arguments):
                with suppress(TimedOut, Exception):  # its result was given already
                    self._called(name, call.name, call.arguments, _unread)
        self._done[name] = place


def _unread(value: Any) -> None:
    """A result that is known."""
