"""Random domains over the lexicon: the worlds in which the reader learns to read docs, and nothing else.

Every draw gives names, codes, prefixes and rules anew, so that no fact of a built-in domain can be memorised.
"""

import random
from dataclasses import replace

from seal.env.domain import Domain, Parameter, Tool
from seal.env.lexicon import CHOICES, CODES, FILLERS, INTENTS, NOUNS, PREFIXES, TOOL_NAMES


def _template(rng: random.Random, intent: str, noun: str, places: list[str]) -> str:
    """Intent, entity and words in random order, with small talk between them."""
    groups = [intent, f"{noun} {{id}}", *places]
    rng.shuffle(groups)
    words: list[str] = []
    for group in groups:
        words += [*rng.sample(FILLERS, rng.choice((0, 0, 1, 1, 2))), group]
    return " ".join([*words, *rng.sample(FILLERS, rng.choice((0, 0, 1)))])


def random_domain(rng: random.Random, n_tools: int = 6) -> Domain:
    """One lookup, one or two checks, and writing tools with zero to two choices, prefixes, order and permissions."""
    names, says = rng.sample(TOOL_NAMES, n_tools), rng.sample(INTENTS, n_tools)
    nouns, words = rng.sample(NOUNS, 2 + 2 * n_tools), rng.sample(CHOICES, len(CHOICES))
    main, sub = nouns[0], nouns[1]
    tools: list[Tool] = []

    def subject(entity: str, legacy: float) -> Parameter:
        return Parameter(entity, entity=entity, prefix=rng.choice(PREFIXES) if rng.random() < legacy else "")

    def asks(i: int, noun: str, places: list[str]) -> tuple[str, ...]:
        return (_template(rng, says[i], noun, places),)

    lookup = rng.random() < 0.5
    n_checks = rng.choice((1, 2)) + lookup
    for i in range(n_checks):
        parameter, returns = subject(main, 0.15), sub if lookup and i == 0 else ""
        templates = asks(i, main, []) if rng.random() < 0.4 else ()
        tools.append(Tool(names[i], says[i], (parameter,), writes=False, returns=returns, templates=templates))
    checks = names[lookup:n_checks]
    for i in range(n_checks, n_tools):
        choices = []
        for j in range(rng.choice((0, 1, 1, 1, 2))):
            n = rng.choice((2, 3, 4))
            codes = rng.sample(CODES, n)
            choices.append(Parameter(nouns[2 + 2 * i + j], choices={words.pop(): code for code in codes}))
        entity = sub if lookup and rng.random() < 0.3 else main
        rule = rng.choice(("", "", "", "needs", "role")) if entity == main else ""
        parameter, writes = subject(entity, 0.35), rng.random() < 0.9 or bool(choices)
        rules = {rule: rng.choice(checks)} if rule else {}
        templates = asks(i, main, [f"{{{choice.name}}}" for choice in choices])
        tools.append(Tool(names[i], says[i], (parameter, *choices), writes, templates=templates, **rules))
    if lookup and not any(tool.parameters[0].entity == sub for tool in tools):
        tools[0] = replace(tools[0], returns="")
    rng.shuffle(tools)
    return Domain("procedural", tuple(tools), FILLERS)
