"""Handed cases and mutated gold runs of BFCL, for the tests of its environment and its verdicts."""

import importlib
import json
import random
from collections.abc import Iterator
from pathlib import Path

from seal.core.types import Call, Json, Task

LINES = (Path(__file__).parent / "cases.jsonl").read_text().splitlines()
CASES: dict[str, dict[str, Json]] = {case["id"]: case for case in map(json.loads, LINES)}

JUNK = importlib.import_module("trajectories").JUNK


def gold(task: Task) -> list[list[Call]]:
    return [list(turn.gold) for turn in task.turns]


def in_steps(turns: list[list[Call]]) -> list[list[list[Call]]]:
    """One step a turn."""
    return [[calls] for calls in turns]


def mutants(tasks: list[Task], n: int, seed: int) -> Iterator[tuple[Task, list[list[Call]]]]:
    """`n` gold runs with one thing changed."""
    rng = random.Random(seed)
    for _ in range(n):
        task = rng.choice(tasks)
        yield task, _mutant(rng, tasks, gold(task))


def _mutant(rng: random.Random, tasks: list[Task], turns: list[list[Call]]) -> list[list[Call]]:
    at = rng.randrange(len(turns))
    calls, other = turns[at], rng.randrange(len(turns))
    match rng.choice(("drop", "shuffle", "alter", "junk", "early", "twice", "foreign", "silent", "exchange")):
        case "drop" if calls:
            calls.pop(rng.randrange(len(calls)))
        case "shuffle":
            rng.shuffle(calls)
        case "alter" if calls:
            _alter(rng, calls)
        case "junk":
            calls.insert(rng.randint(0, len(calls)), rng.choice(JUNK))
        case "early" if at:
            turns[at - 1] += calls
            turns[at] = []
        case "twice":
            turns[at] = calls + calls
        case "foreign":
            calls += rng.choice(tasks).turns[0].gold
        case "silent":
            turns[at] = []
        case "exchange":
            turns[at], turns[other] = turns[other], turns[at]
    return turns


def _alter(rng: random.Random, calls: list[Call]) -> None:
    at = rng.randrange(len(calls))
    arguments = dict(calls[at].arguments)
    if arguments:
        name = rng.choice(sorted(arguments))
        arguments[name] = _other(rng, arguments[name])
        calls[at] = Call(calls[at].name, arguments)


def _other(rng: random.Random, value: Json) -> Json:
    if isinstance(value, bool):
        return rng.choice((not value, str(value)))
    if isinstance(value, int | float):
        return rng.choice((value + 1, str(value), float(value), int(value)))
    if isinstance(value, str):
        return rng.choice((value + "x", value[:-1], None, [value], value.upper()))
    if isinstance(value, list):
        return rng.choice((value[::-1], tuple(value), value[:1], str(value)))
    return None
