"""What the nano policy knows before any round: how to read docs. Demonstrations on random domains only.

They come from an agent that plays by what the docs *show*: where they are silent it tries, is refused, and tries
another way, as a policy with incomplete docs must. Wrong guesses carry no loss, so the reader's guess of an unknown
code stays spread over the codes.
"""

import random
from collections.abc import Mapping, Sequence

from seal.core.types import Call, Fact, Task, ToolDoc
from seal.env.domain import Domain, DomainSession, Parameter, bare_doc, hidden_facts
from seal.env.domain_tasks import scenario_tasks
from seal.env.lexicon import CODES, NOUNS, PREFIXES
from seal.env.procedural import random_domain
from seal.policy.words import WordCodec
from seal.tools.fact_texts import FACT_TEXTS

SLIPS = 0.06  # share of calls that a slip precedes

Rule = tuple[str, str]  # (tool, "needs" | "role" | "returns" | parameter name)


def rules_of(domain: Domain) -> dict[Rule, tuple[str, str]]:
    """Every rule the bare docs hide -> (parameter or "", note text), in the words of the interface's cues."""
    return {_rule(fact): (fact.param, FACT_TEXTS[fact.kind](fact.value)) for fact in hidden_facts(domain)}


def _rule(fact: Fact) -> Rule:
    return fact.tool, fact.param or fact.kind


class Agent:
    """Serves gold programs knowing only some rules. With `feedback`, an error tells it the rule it broke."""

    def __init__(self, domain: Domain, task: Task, known: set[Rule], feedback: bool, rng: random.Random):
        self.domain, self.known, self.feedback, self.rng = domain, set(known), feedback, rng
        self.rules = rules_of(domain)
        self.session = DomainSession(domain, task.initial_state)
        self.steps: list[tuple[str, str, bool]] = []  # action text, shown result, trained

    def turn(self, gold: Sequence[Call]) -> list[tuple[str, str, bool]]:
        """Serve the last gold call; the ones before it when their rule is known, or once a refusal asks for them."""
        self.steps = []
        target = gold[-1]
        tool = self.domain[target.name]
        source = self.domain.source_of(tool.parameters[0].entity)
        pending = {
            (source, "returns")
            if call.name == source
            else (tool.name, "role" if call.name == tool.role else "needs"): call
            for call in gold[:-1]
        }
        for rule in [rule for rule in pending if rule in self.known]:
            self._serve(pending.pop(rule), {})
        self._serve(target, pending)
        return self.steps

    def _serve(self, call: Call, pending: dict[Rule, Call]) -> None:
        """Call until it succeeds: wrong guesses of values whose rule is unknown, then the right ones."""
        parameters = self.domain[call.name].parameters
        guesses = {parameter.name: self._guesses(call, parameter) for parameter in parameters}
        lookup = next((check for (_, rule), check in pending.items() if rule == "returns"), None)
        if len(parameters) > 1 and self.rng.random() < SLIPS:
            self._slip(call)
        while True:
            values = {p.name: guesses[p.name][0] for p in self.domain[call.name].call_parameters}
            if lookup:  # the id is not known yet: the user's own id takes its place
                subject = parameters[0]
                right = call.arguments[subject.name].removeprefix(subject.prefix)
                named = lookup.arguments[self.domain[lookup.name].parameters[0].name].rpartition("-")[2]
                values[subject.name] = values[subject.name].replace(right, named)
            lucky = all(not p.choices or values[p.name] == call.arguments[p.name] for p in parameters)
            shown = self.session.call(Call(call.name, values)).raw
            rule = self._blamed(call.name, shown, pending)
            if rule and self.feedback:
                param, text = self.rules[rule]
                shown += f" | {f'{param}= ' if param else ''}{text}"
                self.known.add(rule)
            self._say(call.name, values, shown, lucky)
            if not rule:
                return
            if rule in pending:
                lookup = None if rule[1] == "returns" else lookup
                self._serve(pending.pop(rule), {})
            else:
                guesses[rule[1]] = guesses[rule[1]][-1:] if self.feedback else guesses[rule[1]][1:]

    def _slip(self, call: Call) -> None:
        """A call with a parameter left out or misnamed, which is shown and not trained: errors teach to read again."""
        values = dict(call.arguments)
        name = next(iter(values))
        value = values.pop(name)
        if self.rng.random() < 0.5:
            values = {self.rng.choice(NOUNS): value, **values}
        self._say(call.name, values, self.session.call(Call(call.name, values)).raw, trained=False)

    def _say(self, name: str, values: Mapping[str, str], shown: str, trained: bool) -> None:
        text = " ".join([name, *(f"{key}={value}" for key, value in values.items())])
        self.steps.append((text, shown, trained))

    def _blamed(self, tool: str, shown: str, pending: dict[Rule, Call]) -> Rule | None:
        if not shown.startswith("error"):
            return None
        if shown in ("error denied", "error refused"):
            return tool, "role" if shown == "error denied" else "needs"
        if "not found" in shown:
            return next(rule for rule in pending if rule[1] == "returns")
        return tool, shown.split()[-1].removesuffix("=")

    def _guesses(self, call: Call, parameter: Parameter) -> list[str]:
        """Values to try in order, the right one last."""
        right, rule = call.arguments[parameter.name], (call.name, parameter.name)
        if rule not in self.rules or rule in self.known:
            return [right]
        n = self.rng.choice((0, 1, 1, 2))
        if parameter.choices:  # never a code of another word: that call would succeed and be wrong for good
            return [*self.rng.sample([code for code in CODES if code not in parameter.choices.values()], n), right]
        bare = right.removeprefix(parameter.prefix)
        others = [prefix + bare for prefix in PREFIXES if prefix != parameter.prefix]
        return [bare, *self.rng.sample(others, n // 2), right]


def noted_docs(domain: Domain, names: Sequence[str], known: set[Rule]) -> list[ToolDoc]:
    """Bare docs of the tools, with the notes of the known rules."""
    facts = [fact for fact in hidden_facts(domain) if _rule(fact) in known]
    return [bare_doc(domain[name], facts) for name in names]


def demonstration(rng: random.Random, codec: WordCodec, max_turns: int, max_tools: int) -> tuple[list[int], list[int]]:
    """One episode on a fresh random domain: ids and loss mask of one length."""
    domain = random_domain(rng)
    task = rng.choice(scenario_tasks(rng, domain, "s", "train", max_turns, max_tools))
    rules = rules_of(domain)
    share = rng.choice((1.0, 1.0, 1.0, 0.0, rng.random()))
    known = {rule for rule in rules if rng.random() < share}
    agent = Agent(domain, task, known, feedback=rng.random() < 0.4, rng=rng)
    shown = [name for name in task.toolset if name not in task.holdout]
    ids = codec.prompt(noted_docs(domain, shown, known), ())
    mask = [0] * len(ids)

    def add(segment: list[int], trained: bool) -> None:
        ids.extend(segment)
        mask.extend([int(trained)] * len(segment))

    for i, turn in enumerate(task.turns):
        revealed = [name for name in task.toolset if i and task.holdout.get(name) == i]
        add(codec.user(turn.message, noted_docs(domain, revealed, known)), False)
        for text, result, trained in agent.turn(turn.gold) if turn.gold else ():
            add(codec.encode_action(text), trained)
            add(codec.results([result]), False)
        add(codec.encode_action("done"), True)
    return ids, mask
