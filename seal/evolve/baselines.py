"""Interfaces that do not evolve: what the evolved one is compared with."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from seal.core.errors import ParamError
from seal.core.types import Fact
from seal.evolve.changes import REMOVED_FOR_GOOD, ChangeLog, key_of, removed_for_good
from seal.interface.state import InterfaceState, Item, target_of
from seal.interface.wording import count_words, note, notes_of
from seal.settings.evolve import EvolveParams
from seal.tools.prose import enum_in_text, one_of


def baseline(
    parent: InterfaceState, facts: Sequence[Fact], params: EvolveParams, call_format: str, seed: int, log: ChangeLog
) -> InterfaceState:
    """The interface that `params.interface` names: the same at every round, but for what the gate took out.

    Raises ParamError for a name that is none of them.
    """
    name = params.interface
    if name == "kept":
        for item in parent.active:
            log.add("keep", item, f"interface {name}")
        return parent
    if name == "none":
        items = ()
    elif name == "static":
        items = static(facts).items
    elif name == "published":
        items = published(facts, call_format).items
    elif name == "random":
        whole = sum(log.count(item.text) for item in static(facts).items)
        items = random_items(facts, min(whole, params.token_budget), seed, log.count).items
    else:
        raise ParamError("evolve.interface", name, "use evolved, kept, none, static, published or random")
    before, removed = {item.id: item for item in parent.active}, removed_for_good(parent)
    items = [before.get(i.id) or replace(i, born_in=log.round_id) for i in items if key_of(i) not in removed]
    for item in items:
        log.add("keep" if item.id in before else "add", item, f"interface {name}")
    for item in [item for id_, item in before.items() if id_ not in {item.id for item in items}]:
        log.add("retire", item, f"interface {name}")
    return InterfaceState((*items, *(i for i in parent.items if i.evidence.get("out") in REMOVED_FOR_GOOD)))


def static(facts: Sequence[Fact]) -> InterfaceState:
    """Everything the docs do not tell, at once."""
    return InterfaceState(tuple(cue.item() for cue in notes_of(facts)))


def published(facts: Sequence[Fact], call_format: str = "") -> InterfaceState:
    """The published annotation (arXiv 2605.24426, Appendix D): "[required]" marks and the allowed values of a schema.

    A schema's list of values says nothing about which user word stands for which code, so neither does this. The closed
    lexicon of the "words" format has the values, but neither "of" nor a mark, and every parameter there is required: it
    gets the values alone, for a policy that meets <unk> beside each parameter solves nothing.
    """
    items, words = [], call_format == "words"
    for fact in facts:
        target = target_of(fact.tool, fact.param)
        if fact.kind == "required" and fact.value and not words:
            items.append(Item("required", target, "docs", "[required]", "", ""))
        elif fact.kind == "enum":
            values = enum_in_text(fact.value) if isinstance(fact.value, str) else fact.value
            codes = sorted(map(str, values.values() if isinstance(values, Mapping) else values))
            items.append(Item("enum", target, "docs", " ".join(codes) if words else one_of(codes), "", ""))
    return InterfaceState(tuple(sorted(items, key=lambda item: (item.target, item.kind, item.text))))


def random_items(
    facts: Sequence[Fact], tokens: int, seed: int, count: Callable[[str], int] = count_words
) -> InterfaceState:
    """The placebo: texts of true cues at wrong places (never their own), up to `tokens` tokens.

    Texts of tools go to tools and texts of parameters to parameters, so that only their truth is lost.
    """
    rng = random.Random(seed)
    cues = notes_of(facts)
    places = sorted({cue.target for cue in cues} | {target_of(fact.tool, fact.param) for fact in facts})
    true = {(cue.target, cue.text) for fact in facts if (cue := note(fact))}
    rng.shuffle(cues)
    items, spent = [], 0
    for cue in cues:
        is_param = bool(cue.fact and cue.fact.param)
        wrong = [p for p in places if ("." in p) == is_param and p != cue.target and (p, cue.text) not in true]
        if wrong and spent + count(cue.text) <= tokens:
            items.append(Item(cue.kind, rng.choice(wrong), "docs", cue.text, "", ""))
            spent += count(cue.text)
    unique = {item.id: item for item in items}
    return InterfaceState(tuple(sorted(unique.values(), key=lambda item: (item.target, item.kind, item.text))))
