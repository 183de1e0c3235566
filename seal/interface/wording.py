"""Operators: each a small pure function from what is known (a fact, a learned order, an error kind, a label) to a cue.

Cue texts are short and of fixed forms, since the nano policy reads them word by word:
`damaged K3 late K1`, `one of A B`, `starts ORD-`, `after verify`, `requires approve`, `returns shipment=`. Kinds
outside PLAIN_KINDS speak to language models.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from seal.core.labels import Label
from seal.core.types import CUE_KINDS, Fact, Json, Order
from seal.interface.feedback import LOOP, SYNTAX
from seal.interface.render import ANY_CATEGORY
from seal.interface.state import Item, is_one_line, target_of
from seal.tools.fact_texts import FACT_TEXTS

# Error kind (or SYNTAX, LOOP) -> template; the words in braces are filled by seal.interface.placeholders.
RECOVERY_TEMPLATES: Mapping[str, str] = {
    "missing_argument": "add the required {missing}",
    "unexpected_argument": "this tool takes {params}",
    "wrong_type": "give {types}",
    "unknown_tool": "no such tool nearest {nearest}",
    "invalid_value": "give {allowed}",
    "not_found": "look it up with {lookup}",
    "precondition": "another tool must succeed first",
    "permission": "a permission must be granted first",
    "timeout": "try again once",
    "other": "look it up with {lookup}",
    LOOP: "the same call failed before change it",
}

# Call format -> an example with placeholders for names.
CALL_EXAMPLES: Mapping[str, str] = {
    "words": "call as name key=value",
    "pythonic": "call as [name(key=value)]",
    "qwen_xml": 'call as <tool_call>{"name": "name", "arguments": {"key": "value"}}</tool_call>',
    "llama_json": 'call as {"name": "name", "parameters": {"key": "value"}}',
    "openai": 'call as {"name": "name", "arguments": "{\\"key\\": \\"value\\"}"}',
}

GUIDANCE: Mapping[Label, str] = {
    Label.INVALID_TOOL_CALL: "call only tools that are listed",
    Label.ARGUMENT_MISMATCH: "copy values exactly as the user or a result gives them",
    Label.CONSTRAINT_VIOLATION: "do first what a tool needs before it runs",
    Label.RECOVERY_FAILURE: "after an error change the call and try again",
    Label.SPURIOUS_TOOL_CALL: "call nothing when no tool fits or a value is missing",
    Label.MISSING_TOOL_CALL: "call a tool whenever one fits the request",
    Label.STATE_MISMATCH: "read earlier results before changing anything",
    Label.RESPONSE_MISMATCH: "look up everything the user asks about",
    Label.BUDGET_EXHAUSTED: "stop once the request is served",
}

# Kinds that quote no fact.
_NO_FACT = CUE_KINDS[len(FACT_TEXTS) :]
ORDER_KIND, RECOVER_KIND, RECOVER_ORDER_KIND, RECOVER_ANY_KIND, CALL_FORMAT_KIND, GUIDANCE_KIND = _NO_FACT
# Kinds whose texts are of the short fixed forms every policy here reads; the others speak to language models.
PLAIN_KINDS = ("enum", "format", "needs", "role", "returns", ORDER_KIND, RECOVER_KIND)
RECOVERABLE = frozenset({"enum", "format", "needs", "role"})  # facts worth telling again after an error


@dataclass(frozen=True, slots=True)
class Cue:
    """An item that is not yet born: what it says and where. `fact` is what it quotes, if anything."""

    kind: str
    target: str
    where: str
    text: str
    fact: Fact | None = None
    counts: str = ""  # behind a learned order, in words

    def item(self, label: str = "", born_in: str = "", support: int = 0, **evidence: Json) -> Item:
        return Item(self.kind, self.target, self.where, self.text, label, born_in, support, evidence=evidence)


def note(fact: Fact) -> Cue | None:
    """The doc note of a fact; None where the fact has nothing to tell, or nothing that fits into a line."""
    write = FACT_TEXTS.get(fact.kind)
    text = write(fact.value) if write else ""
    return Cue(fact.kind, target_of(fact.tool, fact.param), "docs", text, fact) if text and is_one_line(text) else None


def recovery(fact: Fact) -> Cue | None:
    """The same knowledge told after an error: `reason= damaged K3 late K1`, `after verify`."""
    cue = note(fact) if fact.kind in RECOVERABLE else None
    if cue is None:
        return None
    text = f"{fact.param}= {cue.text}" if fact.param else cue.text
    return replace(cue, kind=RECOVER_KIND, where="feedback", text=text)


def order(learned: Order) -> Cue:
    """The doc note of a learned order of operations (or of a permission)."""
    word = "requires" if learned.error_kind == "permission" else "after"
    until = f"refused until {learned.prerequisite} succeeded {learned.support} times"
    counts = f"{until}, fine without it {learned.against} times"
    return Cue(ORDER_KIND, learned.tool, "docs", f"{word} {learned.prerequisite}", counts=counts)


def recovery_order(learned: Order) -> Cue:
    """The learned order told after a refusal."""
    cue = order(learned)
    return replace(cue, kind=RECOVER_ORDER_KIND, where="feedback", text=f"{learned.prerequisite} must succeed first")


def recover_any(error_kind: str) -> Cue | None:
    """The template that answers any error of one kind; None for kinds without one."""
    template = RECOVERY_TEMPLATES.get(error_kind)
    return Cue(RECOVER_ANY_KIND, error_kind, "feedback", template) if template else None


def call_format(call_format_name: str) -> Cue | None:
    """An example of a call after an output that did not parse."""
    example = CALL_EXAMPLES.get(call_format_name)
    return Cue(CALL_FORMAT_KIND, SYNTAX, "feedback", example) if example else None


def guidance(label: str, category: str = ANY_CATEGORY) -> Cue | None:
    """A capability hint for one failure label and task category."""
    return Cue(GUIDANCE_KIND, category, "hint", GUIDANCE[Label(label)]) if label in GUIDANCE else None


def count_words(text: str) -> int:
    """Tokens of a cue where no tokenizer is given."""
    return len(text.split())


def notes_of(facts: Sequence[Fact]) -> list[Cue]:
    """Doc notes of all facts the docs do not tell, in a fixed order."""
    cues = [cue for fact in facts if not fact.documented and (cue := note(fact))]
    return sorted(cues, key=lambda cue: (cue.target, cue.kind, cue.text))
