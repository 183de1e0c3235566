"""Tasks of a domain, generated: scenarios of one to three user requests, each in the four BFCL-style categories.

A scenario's four variants share its requests and never cross a split. Gold programs are the shortest that serve the
request under the domain's rules, given what earlier turns already did.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from seal.core.types import Call, Task, UserTurn
from seal.env.domain import Domain, Tool
from seal.env.lexicon import IDS, STATUSES

CATEGORIES = ("base", "miss_func", "miss_param", "long_context")
REQUESTS = (1, 1, 1, 2, 2, 3)  # user requests of a scenario; a withheld tool or a missing value adds a turn
REVEAL = "new tool"


@dataclass(frozen=True, slots=True)
class Request:
    """One thing a user wants: a tool, the id the user names, and a word for every choice parameter."""

    tool: Tool
    subject: str  # id of parameters[0] as the tool needs it
    named: str  # id the user says: the subject, or the id of the entity that leads to it
    words: tuple[tuple[str, str], ...]  # (parameter name, user word)
    template: str

    def message(self, omit: str = "") -> str:
        """The user message; `omit` leaves one place out (its word, or the id)."""
        places = dict(self.words) | {"id": self.named}
        if omit:
            places[omit] = ""
        return " ".join(self.template.format(**places).split())


def chain(domain: Domain, tool: Tool) -> list[Tool]:
    """The tools that must succeed on the same entity before `tool`, in order, `tool` last."""
    steps: list[Tool] = []
    for name in (tool.role, tool.needs):
        if name:
            steps += [step for step in chain(domain, domain[name]) if step not in steps]
    return [*steps, tool]


def gold_calls(domain: Domain, request: Request, done: set[tuple[str, str]]) -> tuple[Call, ...]:
    """The shortest program for a request; `done` (tool, id) pairs need no repetition and are added to."""
    calls = []
    tool = request.tool
    source = domain.source_of(tool.parameters[0].entity)
    if source and request.named != request.subject and (source, request.named) not in done:
        parameter = domain[source].parameters[0]
        calls.append(Call(source, {parameter.name: parameter.prefix + request.named}))
        done.add((source, request.named))
    for step in chain(domain, tool):
        if step is not tool and (step.name, request.subject) in done:
            continue
        words, subject = dict(request.words), step.parameters[0]
        arguments = {p.name: p.choices[words[p.name]] for p in step.parameters[1:]} if step is tool else {}
        arguments[subject.name] = subject.prefix + request.subject
        calls.append(Call(step.name, arguments))
        done.add((step.name, request.subject))
    return tuple(calls)


def tools_for(domain: Domain, requests: Sequence[Request]) -> list[str]:
    """Every tool the gold programs touch, in order of first use."""
    names: dict[str, None] = {}
    for request in requests:
        source = domain.source_of(request.tool.parameters[0].entity)
        names |= dict.fromkeys(([source] if source else []) + [step.name for step in chain(domain, request.tool)])
    return list(names)


def draw_requests(rng: random.Random, domain: Domain, n: int, max_tools: int, records: dict) -> list[Request]:
    """`n` requests that together touch at most `max_tools` tools; a later one may be about the same entity."""
    askable = [tool for tool in domain.tools if tool.templates]
    requests: list[Request] = []
    while len(requests) < n:
        tool = rng.choice(askable)
        source = domain.source_of(tool.parameters[0].entity)
        named_kind = domain[source].parameters[0].entity if source else tool.parameters[0].entity
        same = [r.named for r in requests if r.named in records["entities"][named_kind]]
        named = rng.choice(same) if same and rng.random() < 0.4 else rng.choice(sorted(records["entities"][named_kind]))
        subject = records["entities"][named_kind][named][tool.parameters[0].entity] if source else named
        words = tuple((parameter.name, rng.choice(sorted(parameter.choices))) for parameter in tool.parameters[1:])
        request = Request(tool, subject, named, words, rng.choice(tool.templates))
        if any(r.tool is tool and r.subject == subject for r in requests):
            continue  # the same write twice would make order matter
        if len(tools_for(domain, [*requests, request])) <= max_tools:
            requests.append(request)
        elif rng.random() < 0.05:
            return requests or draw_requests(rng, domain, 1, max_tools, records)
    return requests


def draw_records(rng: random.Random, domain: Domain, n_each: int = 3) -> dict:
    """A few entities of every kind; every entity knows an id of each kind that a lookup can return."""
    kinds = sorted({parameter.entity for tool in domain.tools for parameter in tool.parameters if parameter.entity})
    ids = rng.sample(IDS, n_each * len(kinds))
    by_kind = {kind: ids[i * n_each : (i + 1) * n_each] for i, kind in enumerate(kinds)}
    returned = sorted({tool.returns for tool in domain.tools if tool.returns})
    entities: dict[str, dict[str, dict[str, str]]] = {kind: {} for kind in kinds}
    for kind, keys in by_kind.items():
        for i, key in enumerate(keys):
            found = {other: by_kind[other][i] for other in returned if other != kind}
            entities[kind][key] = {"status": rng.choice(STATUSES)} | found
    return {"entities": entities, "noise": []}


def scenario_tasks(
    rng: random.Random, domain: Domain, scenario_id: str, split: str, max_turns: int = 3, max_tools: int = 4
) -> list[Task]:
    """The four variants of one scenario, in the order of CATEGORIES."""
    records = draw_records(rng, domain)
    requests = draw_requests(rng, domain, min(max_turns, rng.choice(REQUESTS)), max_tools, records)
    toolset = tools_for(domain, requests)
    spare = [tool.name for tool in domain.tools if tool.name not in toolset]
    toolset += rng.sample(spare, min(len(spare), max_tools - len(toolset)))
    rng.shuffle(toolset)
    done: set[tuple[str, str]] = set()
    turns = [UserTurn(request.message(), gold_calls(domain, request, done)) for request in requests]
    k = rng.randrange(len(requests))
    omit = rng.choice(["id", *(name for name, _ in requests[k].words)])
    missing = requests[k].named if omit == "id" else dict(requests[k].words)[omit]
    noise = rng.sample(domain.fillers, min(10, len(domain.fillers)))
    talk = " ".join(rng.sample(domain.fillers, min(6, len(domain.fillers))))
    held = requests[k].tool.name
    # A tool that an earlier turn already needed cannot be withheld: then the first turn that uses it waits for it.
    first = next(i for i, turn in enumerate(turns) if any(call.name == held for call in turn.gold))

    def variant(category: str, turns: Sequence[UserTurn], state: dict = records, **more: Any) -> Task:
        id_ = f"{domain.name}_{category}_{scenario_id}"
        return Task(id_, domain.name, category, scenario_id, split, tuple(turns), state, tuple(toolset), **more)

    def split_turn(at: int, asked: str, then: str) -> list[UserTurn]:
        """A turn as two: what it needs comes only with the second."""
        return [*turns[:at], UserTurn(asked), UserTurn(then, turns[at].gold), *turns[at + 1 :]]

    long = [replace(turn, message=f"{talk} {turn.message}") for turn in turns]
    return [
        variant("base", turns),
        variant("miss_func", split_turn(first, turns[first].message, REVEAL), holdout={held: first + 1}),
        variant("miss_param", split_turn(k, requests[k].message(omit), f"it is {missing}")),
        variant("long_context", long, records | {"noise": noise}),
    ]


def domain_tasks(domain: Domain, seed: int, n_train: int, n_dev: int, n_test: int) -> list[Task]:
    """All tasks of a domain, train then dev then test, four a scenario. A pure function of its arguments."""
    splits = ["train"] * n_train + ["dev"] * n_dev + ["test"] * n_test
    return [
        task
        for i, split in enumerate(splits)
        for task in scenario_tasks(random.Random(f"{seed}/{domain.name}/{i}"), domain, f"s{i:03d}", split)
    ]
