"""A tool domain as data, and the one executor that enforces it.

A built-in domain (shop.yaml, compliance.yaml) is a `Domain` value: tools with parameters, and rules that the bare docs
do not tell (codes for words, id prefixes, order of operations, permissions, what a lookup returns). The executor reads
the same value, so a cue quoted from it is true by construction.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

import yaml

from seal.core.types import Call, Fact, Json, Note, Param, Result, ToolDoc
from seal.env.base import Session
from seal.tools.fact_texts import FACT_TEXTS


@dataclass(frozen=True, slots=True)
class Parameter:
    """Of a tool. An *entity* takes an id (after `prefix`), a *choice* a code for a word the user says."""

    name: str
    entity: str = ""
    prefix: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tool:
    """`parameters[0]` is the entity the tool works on. `needs`/`role`: a tool that must have succeeded on it first.

    `returns` names a field of the entity that a lookup tells (`writes` False). `says`: the word users ask for it by.
    `templates`: user messages with {parameter} places. A tool without templates is only ever a prerequisite.
    """

    name: str
    says: str
    parameters: tuple[Parameter, ...]
    writes: bool = True
    needs: str = ""
    role: str = ""
    returns: str = ""
    templates: tuple[str, ...] = ()

    @property
    def call_parameters(self) -> tuple[Parameter, ...]:
        """Parameters in the order of docs and calls: what is particular to the tool first, the entity last."""
        return (*self.parameters[1:], self.parameters[0])


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
    text = (files("seal.env") / f"{name}.yaml").read_text(encoding="utf-8")
    data = yaml.load(text, yaml.CSafeLoader)  # shipped and tested: read by libyaml, every stage does
    tools = []
    for entry in data["tools"]:
        parameters = tuple(Parameter(**parameter) for parameter in entry.pop("parameters"))
        tools.append(Tool(parameters=parameters, templates=tuple(entry.pop("templates", ())), **entry))
    return Domain(data["name"], tuple(tools), tuple(data["fillers"]))


def bare_doc(tool: Tool, stated: Iterable[Fact] = ()) -> ToolDoc:
    """What the policy sees: names and purpose, and of the tool's rules those that are `stated` (facts of any tools)."""
    notes = tuple(Note(fact.param, FACT_TEXTS[fact.kind](fact.value)) for fact in stated if fact.tool == tool.name)
    return ToolDoc(tool.name, tool.says, tuple(Param(parameter.name) for parameter in tool.call_parameters), notes)


def facts_of(tool: Tool) -> list[Fact]:
    """Everything the executor enforces on one tool."""
    facts = [Fact(tool.name, "", "purpose", tool.says, documented=True)]
    rules = {"needs": tool.needs, "role": tool.role, "returns": tool.returns}
    facts += [Fact(tool.name, "", kind, [name]) for kind, name in rules.items() if name]
    for parameter in tool.parameters:
        facts += [Fact(tool.name, parameter.name, "required", True, documented=True)]
        facts += [Fact(tool.name, parameter.name, "type", "string", documented=True)]
        if parameter.prefix:
            facts.append(Fact(tool.name, parameter.name, "format", parameter.prefix))
        if parameter.choices:
            facts.append(Fact(tool.name, parameter.name, "enum", dict(parameter.choices)))
    return facts


def hidden_facts(domain: Domain) -> list[Fact]:
    """What the docs hide where they state no rule."""
    return [fact for tool in domain.tools for fact in facts_of(tool) if not fact.documented]


def stated_facts(domain: Domain, share: float) -> list[Fact]:
    """The facts that the bare docs state where they state this share of the hidden ones.

    Which ones hangs on the domain alone; those stated at a lower share are among those at a higher one.
    """
    hidden = hidden_facts(domain)
    return sorted(hidden, key=_rank)[: round(share * len(hidden))]


def _rank(fact: Fact) -> bytes:
    return hashlib.blake2b(f"{fact.tool} {fact.param} {fact.kind}".encode(), digest_size=8).digest()


class DomainSession(Session):
    """Executes calls against the records of one task.

    Records: {"entities": {kind: {id: {field: value}}}, "noise": [words]}. Public state: {tool: {id: {name: code}}},
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
        known = [parameter.name for parameter in tool.parameters]
        if unexpected := [name for name in call.arguments if name not in known]:
            return f"error unexpected {unexpected[0]}=", "unexpected_argument"
        if missing := [name for name in known if name not in call.arguments]:
            return f"error missing {missing[0]}=", "missing_argument"
        values: dict[str, str] = {}
        for parameter in tool.parameters:
            value = call.arguments[parameter.name]
            if not isinstance(value, str):
                return f"error invalid {parameter.name}=", "wrong_type"
            bare = value.removeprefix(parameter.prefix)
            if (parameter.prefix and bare == value) if parameter.entity else value not in parameter.choices.values():
                return f"error invalid {parameter.name}=", "invalid_value"
            if parameter.entity and bare not in self._entities[parameter.entity]:
                return f"error not found {parameter.name}=", "not_found"
            values[parameter.name] = bare
        subject = values[tool.parameters[0].name]
        if tool.role and (tool.role, subject) not in self._done:
            return "error denied", "permission"
        if tool.needs and (tool.needs, subject) not in self._done:
            return "error refused", "precondition"
        self._done.add((tool.name, subject))
        if tool.writes:
            rest = {parameter.name: values[parameter.name] for parameter in tool.parameters[1:]}
            self._written.setdefault(tool.name, {})[subject] = rest
            return "ok", ""
        row = self._entities[tool.parameters[0].entity][subject]
        field = f"{tool.returns}= {row[tool.returns]}" if tool.returns else row["status"]
        return " ".join(("ok", field, *self._noise)), ""
