"""Handed cases, environments and changed conversations of tau2, for the tests of its environment and its verdicts."""

import json
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from seal.core.types import Call, Json, Task
from seal.env.tau2 import Tau2Env

LINES = (Path(__file__).parent / "cases.jsonl").read_text().splitlines()
CASES: dict[str, dict[str, Json]] = {case["id"]: case for case in map(json.loads, LINES)}
ARMS = (("retail", "scripted"), ("airline", "scripted"), ("telecom", "scripted"), ("telecom", "solo"))
COUNTS = {"retail": 114, "airline": 50, "telecom": 114}

JUNK = (
    Call("no_such_tool", {}),
    Call("calculate", {"expression": "9**9**9"}),
    Call("transfer_to_human_agents", {"summary": "x"}),
    Call("respond", {"content": "Shall I go on?"}),
    Call("respond", {"content": "Bye. 10, 1628"}),
    Call("done", {}),
)


@cache
def env(domain: str, user: str = "scripted") -> Tau2Env:
    return Tau2Env(domain=domain, user=user)


def task(domain: str, id_: str, user: str = "scripted") -> Task:
    return next(task for task in env(domain, user).tasks() if task.task_id == f"{domain}_{id_}")


def mutants(tasks: list[Task], n: int, seed: int) -> Iterator[tuple[Task, list[Call]]]:
    """`n` gold conversations with one thing changed."""
    rng = random.Random(seed)
    for _ in range(n):
        chosen = rng.choice(tasks)
        yield chosen, _mutant(rng, list(chosen.turns[0].gold), rng.choice(tasks).turns[0].gold)


def _mutant(rng: random.Random, calls: list[Call], others: tuple[Call, ...]) -> list[Call]:
    at = rng.randrange(len(calls))
    match rng.choice(("drop", "alter", "junk", "twice", "foreign", "silent", "shuffle", "errors")):
        case "drop":
            calls.pop(at)
        case "alter":
            arguments = dict(calls[at].arguments)
            if arguments:
                name = rng.choice(sorted(arguments))
                value = arguments[name]
                arguments[name] = f"{value}x" if isinstance(value, str) else None
                if calls[at].name == "respond":
                    arguments[name] = "Well."
                calls[at] = Call(calls[at].name, arguments)
        case "junk":
            calls.insert(at, rng.choice(JUNK))
        case "twice":
            calls.insert(at, calls[at])
        case "foreign":
            calls[at:at] = [call for call in others if call.name not in ("respond", "done")]
        case "silent":
            calls = [call for call in calls if call.name != "respond"]
        case "shuffle":
            rng.shuffle(calls)
        case "errors":
            calls[at:at] = [JUNK[0]] * rng.randint(8, 10)
    return calls
