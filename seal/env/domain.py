"""A tool domain as data, and the one executor that enforces it.

A built-in domain (shop.yaml, compliance.yaml) is a `Domain` value: tools with parameters, and rules that the bare docs
do not tell (codes for words, id prefixes, order of operations, permissions, what a lookup returns). The executor reads
the same value, so a cue quoted from it is true by construction.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from seal.core.types import Call, Fact, Json, Note, Param, Result, ToolDoc
from seal.env.base import Session
from seal.settings.params import load_yaml
from seal.tools.phrases import FACT_TEXTS


@dataclass(frozen=True, slots=True)
class Slot:
    """A parameter. An *entity* slot takes an id (after `prefix`), a *choice* slot a code for a word the user says."""

    name: str
    entity: str = ""
    prefix: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tool:
    """`slots[0]` is the entity the tool works on. `needs`/`role`: a tool that must have succeeded on that entity first.

    `returns` names a field of the entity that a lookup tells (`writes` False). `says`: the word users ask for it by.
    `templates`: user messages with {slot} places. A tool without templates is only ever a prerequisite.
    """

    name: str
    says: str
    slots: tuple[Slot, ...]
    writes: bool = True
    needs: str = ""
    role: str = ""
    returns: str = ""
    templates: tuple[str, ...] = ()

    @property
    def said_slots(self) -> tuple[Slot, ...]:
        """Slots in the order of docs and calls: what is particular to the tool first, the entity last."""
        return (*self.slots[1:], self.slots[0])


@dataclass(frozen=True, slots=True)
class Domain:
    name: str
    tools: tuple[Tool, ...]
    fillers: tuple[str, ...] = ()  # words of small talk, for long contexts

    def __getitem__(self, name: str) -> Tool:
        return next(tool for tool in self.tools if tool.name == name)

    def source_of(self, entity: str) -> str:
        """The lookup tool that returns ids of `entity`, or "" where users give them."""
        return next((tool.name for tool in self.tools if tool.returns == entity), "")


def domain_named(name: str) -> Domain:
    """The built-in domain of `seal/env/<name>.yaml`."""
    data = load_yaml(Path(str(files("seal.env") / f"{name}.yaml")), "domain")
    tools = []
    for entry in data["tools"]:
        slots = tuple(Slot(**slot) for slot in entry.pop("slots"))
        tools.append(Tool(slots=slots, templates=tuple(entry.pop("templates", ())), **entry))
    return Domain(data["name"], tuple(tools), tuple(data["fillers"]))


def bare_doc(tool: Tool, told: Iterable[Fact] = ()) -> ToolDoc:
    """What the policy sees: names and purpose, and of the tool's rules those that are `told` (facts of any tools)."""
    notes = tuple(Note(fact.param, FACT_TEXTS[fact.kind](fact.value)) for fact in told if fact.tool == tool.name)
    return ToolDoc(tool.name, tool.says, tuple(Param(slot.name) for slot in tool.said_slots), notes)


def facts_of(tool: Tool) -> list[Fact]:
    """Everything the executor enforces on one tool."""
    facts = [Fact(tool.name, "", "purpose", tool.says, documented=True)]
    if tool.needs:
        facts.append(Fact(tool.name, "", "needs", [tool.needs]))
    if tool.role:
        facts.append(Fact(tool.name, "", "role", [tool.role]))
    if tool.returns:
        facts.append(Fact(tool.name, "", "returns", [tool.returns]))
    for slot in tool.slots:
        facts += [Fact(tool.name, slot.name, "required", True, documented=True)]
        facts += [Fact(tool.name, slot.name, "type", "string", documented=True)]
        if slot.prefix:
            facts.append(Fact(tool.name, slot.name, "format", slot.prefix))
        if slot.choices:
            facts.append(Fact(tool.name, slot.name, "enum", dict(slot.choices)))
    return facts


def hidden_facts(domain: Domain) -> list[Fact]:
    """What the docs hide where they tell no rule."""
    return [fact for tool in domain.tools for fact in facts_of(tool) if not fact.documented]


def told_of(domain: Domain, share: float) -> list[Fact]:
    """The facts that the bare docs tell where they tell this share of the hidden ones.

    Which ones hangs on the domain alone; those told at a lower share are among those at a higher one.
    """
    hidden = hidden_facts(domain)
    return sorted(hidden, key=_drawn)[: round(share * len(hidden))]


def _drawn(fact: Fact) -> bytes:
    return hashlib.blake2b(f"{fact.tool} {fact.param} {fact.kind}".encode(), digest_size=8).digest()


class DomainSession(Session):
    """Executes calls against the records of one task.

    Records: {"entities": {kind: {id: {field: value}}}, "noise": [words]}. Public state: {tool: {id: {slot: code}}},
    what was written; lookups leave it alone. Which tools succeeded on which entity is private bookkeeping.
    """

    def __init__(self, domain: Domain, records: Mapping[str, Any]):
        self._domain = domain
        self._entities: Mapping[str, Mapping[str, Mapping[str, str]]] = records["entities"]
        self._noise = tuple(records.get("noise", ()))
        self._written: dict[str, dict[str, dict[str, str]]] = {}
        self._done: set[tuple[str, str]] = set()

    def state(self) -> dict[str, Json]:
        return {name: {key: dict(row) for key, row in rows.items()} for name, rows in self._written.items()}

    def call(self, call: Call) -> Result:
        text, kind = self._execute(call)
        return Result(text, text, kind)

    def _execute(self, call: Call) -> tuple[str, str]:
        tool = next((tool for tool in self._domain.tools if tool.name == call.name), None)
        if tool is None:
            return "error unknown tool", "unknown_tool"
        known = {slot.name for slot in tool.slots}
        for name in call.arguments:
            if name not in known:
                return f"error unexpected {name}=", "unexpected_argument"
        for slot in tool.slots:
            if slot.name not in call.arguments:
                return f"error missing {slot.name}=", "missing_argument"
        values: dict[str, str] = {}
        for slot in tool.slots:
            value = call.arguments[slot.name]
            if not isinstance(value, str):
                return f"error invalid {slot.name}=", "wrong_type"
            if slot.entity:
                bare = value.removeprefix(slot.prefix)
                if slot.prefix and bare == value:
                    return f"error invalid {slot.name}=", "invalid_value"
                if bare not in self._entities[slot.entity]:
                    return f"error not found {slot.name}=", "not_found"
                values[slot.name] = bare
            elif value not in slot.choices.values():
                return f"error invalid {slot.name}=", "invalid_value"
            else:
                values[slot.name] = value
        subject = values[tool.slots[0].name]
        if tool.role and (tool.role, subject) not in self._done:
            return "error denied", "permission"
        if tool.needs and (tool.needs, subject) not in self._done:
            return "error refused", "precondition"
        self._done.add((tool.name, subject))
        if tool.writes:
            rest = {slot.name: values[slot.name] for slot in tool.slots[1:]}
            self._written.setdefault(tool.name, {})[subject] = rest
            return "ok", ""
        row = self._entities[tool.slots[0].entity][subject]
        told = f"{tool.returns}= {row[tool.returns]}" if tool.returns else row["status"]
        return " ".join(("ok", told, *self._noise)), ""
