"""Known mistakes, made on purpose: mutations of a gold program. Scripted policies and the proof of diagnosis play them.

A *step script* is what a policy says in one step: calls, or text that is no call. A *turn script* is a list of them,
without the closing end of turn. Every draw comes from the generator that is handed in.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from seal.core.types import Call, Json, Task

StepScript = tuple[Call, ...] | str
TurnScript = tuple[StepScript, ...]
MAX_GOLD_STEPS = 5  # a gold turn takes at most so many steps, so that it fits every step limit


@dataclass(frozen=True, slots=True)
class Site:
    """One gold call of one turn."""

    task: Task
    turn: int
    index: int

    @property
    def call(self) -> Call:
        return self.task.turns[self.turn].gold[self.index]

    @property
    def tools_of_turn(self) -> set[str]:
        return {call.name for call in self.task.turns[self.turn].gold}

    def other_calls(self) -> list[Call]:
        """Gold calls of other turns by tools that this turn does not use."""
        turns = [turn for i, turn in enumerate(self.task.turns) if i != self.turn]
        return [call for turn in turns for call in turn.gold if call.name not in self.tools_of_turn]


def gold_script(task: Task, turn: int) -> TurnScript:
    """The gold calls of a turn, one a step where that fits in MAX_GOLD_STEPS."""
    return steps_of(task.turns[turn].gold)


def steps_of(calls: Sequence[Call]) -> TurnScript:
    """Calls as steps of equal size, at most MAX_GOLD_STEPS of them."""
    size = max(1, -(-len(calls) // MAX_GOLD_STEPS))
    return tuple(tuple(calls[i : i + size]) for i in range(0, len(calls), size))


def drop(site: Site, rng: random.Random) -> TurnScript | None:
    return () if len(site.task.turns[site.turn].gold) > 1 else None


def unknown_tool(site: Site, rng: random.Random) -> TurnScript | None:
    return ((Call(f"{site.call.name}_{rng.choice(('now', 'all', 'v2'))}", site.call.arguments),),)


def malformed(site: Site, rng: random.Random) -> TurnScript | None:
    return (f"{site.call.name} (( ,, =",)


def missing_argument(site: Site, rng: random.Random) -> TurnScript | None:
    return ((without(site.call, rng.choice(sorted(site.call.arguments))),),) if site.call.arguments else None


def extra_argument(site: Site, rng: random.Random) -> TurnScript | None:
    return ((Call(site.call.name, {**site.call.arguments, "extra_option": "yes"}),),)


def wrong_type(site: Site, rng: random.Random) -> TurnScript | None:
    names = [name for name, value in sorted(site.call.arguments.items()) if retyped(value) is not None]
    return _changed(site, rng, names, retyped)


def altered_literal(site: Site, rng: random.Random) -> TurnScript | None:
    names = [name for name, value in sorted(site.call.arguments.items()) if altered(value) is not None]
    return _changed(site, rng, names, altered)


def stale_referent(site: Site, rng: random.Random) -> TurnScript | None:
    options = [
        (name, call.arguments[name])
        for turn in site.task.turns[: site.turn]
        for call in turn.gold
        for name, value in sorted(site.call.arguments.items())
        if is_name(value) and type(call.arguments.get(name)) is type(value) and call.arguments[name] != value
    ]
    if not options:
        return None
    name, value = rng.choice(options)
    return ((Call(site.call.name, {**site.call.arguments, name: value}),),)


def wrong_tool(site: Site, rng: random.Random) -> TurnScript | None:
    others = site.other_calls()
    return ((rng.choice(others),),) if others else None


def repeated_failure(site: Site, rng: random.Random) -> TurnScript | None:
    bad = missing_argument(site, rng)
    return bad * 2 if bad else None


def recovered(site: Site, rng: random.Random) -> TurnScript | None:
    bad = missing_argument(site, rng)
    return (*bad, (site.call,)) if bad else None


def _by_name(*faults: Callable) -> dict[str, Callable]:
    return {fault.__name__: fault for fault in faults}


CallFault = Callable[[Site, random.Random], TurnScript | None]
CALL_FAULTS: Mapping[str, CallFault] = {
    **_by_name(drop, unknown_tool, malformed, missing_argument, extra_argument, wrong_type),
    **_by_name(altered_literal, stale_referent, wrong_tool, repeated_failure),
    **_by_name(recovered),  # no fault in the end: the control that must not be blamed
}


def empty(task: Task, turn: int, rng: random.Random) -> TurnScript | None:
    return () if task.turns[turn].gold else None


def premature_end(task: Task, turn: int, rng: random.Random) -> TurnScript | None:
    gold = task.turns[turn].gold
    return steps_of(gold[: rng.randrange(1, len(gold))]) if len(gold) > 1 else None


def swap(task: Task, turn: int, rng: random.Random) -> TurnScript | None:
    gold = list(task.turns[turn].gold)
    if len(gold) < 2:
        return None
    i = rng.randrange(len(gold) - 1)
    gold[i], gold[i + 1] = gold[i + 1], gold[i]
    return steps_of(gold)


def extra_call(task: Task, turn: int, rng: random.Random) -> TurnScript | None:
    if not task.turns[turn].gold:
        return None
    others = Site(task, turn, 0).other_calls()
    return (*gold_script(task, turn), (rng.choice(others),)) if others else None


def spurious(task: Task, turn: int, rng: random.Random) -> TurnScript | None:
    past = [call for before in task.turns[:turn] for call in before.gold]
    return ((rng.choice(past),),) if past and not task.turns[turn].gold else None


def early(task: Task, turn: int, rng: random.Random) -> TurnScript | None:
    if task.turns[turn].gold or turn + 1 == len(task.turns) or not task.turns[turn + 1].gold:
        return None
    return gold_script(task, turn + 1)


def loop(task: Task, turn: int, rng: random.Random) -> TurnScript | None:
    gold = task.turns[turn].gold
    return (*gold_script(task, turn), *(((gold[-1],),) * 64)) if gold else None


TurnFault = Callable[[Task, int, random.Random], TurnScript | None]
TURN_FAULTS: Mapping[str, TurnFault] = _by_name(empty, premature_end, swap, extra_call, spurious, early, loop)


def with_fault(task: Task, turn: int, kind: str, rng: random.Random) -> TurnScript | None:
    """The script of a turn with one fault of a kind; None where the turn has no place for it."""
    if kind in TURN_FAULTS:
        return TURN_FAULTS[kind](task, turn, rng)
    gold = task.turns[turn].gold
    if not gold:
        return None
    index = rng.randrange(len(gold))
    steps = CALL_FAULTS[kind](Site(task, turn, index), rng)
    return None if steps is None else spliced(task, turn, {index: steps})


def spliced(task: Task, turn: int, at: Mapping[int, TurnScript]) -> TurnScript:
    """The gold program of a turn with other steps in place of some calls."""
    gold = task.turns[turn].gold
    steps: list[StepScript] = []
    start = 0
    for i in sorted(at):
        steps += (*steps_of(gold[start:i]), *at[i])
        start = i + 1
    return (*steps, *steps_of(gold[start:]))


def without(call: Call, name: str) -> Call:
    return Call(call.name, {key: value for key, value in call.arguments.items() if key != name})


def altered(value: Json) -> Json | None:
    """Another value of the same type that names nothing; None where there is none."""
    if isinstance(value, bool) or value is None or value in ("", [], {}):
        return None
    if isinstance(value, int | float):
        return value + 7
    if isinstance(value, str):
        return f"{value[:-1]}{'q' if value[-1] != 'q' else 'z'}x"
    if isinstance(value, list):
        first = altered(value[0])
        return None if first is None else [first, *value[1:]]
    return None


def retyped(value: Json) -> Json | None:
    """The value in a wrong JSON type; None where there is none."""
    if isinstance(value, bool):
        return "yes"
    if isinstance(value, int | float):
        return f"{value} units"
    if isinstance(value, str):
        return [value]
    return str(value) if isinstance(value, list | dict) else None


def is_name(value: Json) -> bool:
    """Whether a value can name a thing of the world: an id or a name, not a flag or a small number."""
    if isinstance(value, bool):
        return False
    return (isinstance(value, str) and len(value) > 1) or (isinstance(value, int) and abs(value) >= 100)


def _changed(site: Site, rng: random.Random, names: list[str], change: Callable[[Json], Json]) -> TurnScript | None:
    if not names:
        return None
    name = rng.choice(names)
    return ((Call(site.call.name, {**site.call.arguments, name: change(site.call.arguments[name])}),),)
