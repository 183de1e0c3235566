"""The leak guard: a cue may say only what facts, docs, names or templates say.

Every word of a cue must have a source; one that has none is looked up among gold arguments, hidden state and user
messages, to name what leaks. A gold value of several words, or a run of words of a user message, must stand as a whole
in one source: harmless words can be joined to an answer.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from seal.core.types import Fact, Json, Task, ToolDoc
from seal.interface import wording
from seal.interface.placeholders import PLACEHOLDER
from seal.interface.state import Item
from seal.tools.fact_texts import FACT_TEXTS

_WORD = re.compile(r"[^\W_]+")
TASK_RUN = 5  # words in a row that make a quotation of a user message

_TEMPLATES = (
    *wording.RECOVERY_TEMPLATES.values(),
    *wording.CALL_EXAMPLES.values(),
    *wording.GUIDANCE.values(),
    "required optional one of starts format after requires returns from to in default call as is for",
    "must succeed first only no arguments",
)


def words(text: str) -> list[str]:
    """Lower-case runs of letters and digits: `ORD-101` gives ord and 101, `find_order` find and order."""
    return _WORD.findall(text.lower())


def _leaves(value: Json) -> Iterator[str]:
    """All scalars and keys of a JSON value, as text."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from _leaves(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _leaves(inner)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


@dataclass(frozen=True, slots=True)
class Guard:
    """What may be said and what must not, prepared once for many items. Build it with `guard_for`."""

    allowed: frozenset[str]
    sources: tuple[str, ...]  # allowed texts, normalised, for whole phrases
    gold: frozenset[str] = frozenset()
    gold_phrases: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    messages: tuple[str, ...] = field(default=(), repr=False)

    def reasons(self, item: Item | wording.Cue) -> list[str]:
        """Why the item must not be shown; [] when it may."""
        text = PLACEHOLDER.sub(" ", item.text) if item.kind == wording.RECOVER_ANY_KIND else item.text
        spoken = words(text)
        found = []
        for word in dict.fromkeys(word for word in spoken if word not in self.allowed):
            if word in self.gold:
                found.append(f"gold argument value {word!r}")
            elif word in self.hidden:
                found.append(f"hidden state value {word!r}")
            elif any(f" {word} " in message for message in self.messages):
                found.append(f"task text {word!r}")
            else:
                found.append(f"word without a source {word!r}")
        whole = _padded(spoken)
        phrases = [phrase for phrase in sorted(self.gold_phrases) if phrase in whole and not self._has_source(phrase)]
        found += [f"gold argument value {phrase.strip()!r}" for phrase in phrases]
        runs = (_padded(spoken[i : i + TASK_RUN]) for i in range(len(spoken) - TASK_RUN + 1))
        for run in runs:
            if not self._has_source(run) and any(run in message for message in self.messages):
                return [*found, f"task text {run.strip()!r}"]
        return found

    def _has_source(self, phrase: str) -> bool:
        return any(phrase in source for source in self.sources)


def _padded(phrase: Iterable[str]) -> str:
    """Words as a text in which every whole word stands between spaces."""
    return f" {' '.join(phrase)} "


def guard_for(facts: Iterable[Fact], docs: Iterable[ToolDoc], tasks: Iterable[Task] = ()) -> Guard:
    """A guard over these facts and documented texts; what it refuses is named after what `tasks` hold."""
    texts = [*_TEMPLATES, *FACT_TEXTS]
    for fact in facts:
        cue = wording.note(fact)
        texts += [fact.tool, fact.param, *_leaves(fact.value), cue.text if cue else ""]
    for doc in docs:
        texts += [doc.name, doc.description]
        for param in doc.params:
            texts += [param.name, param.type, param.description, *_leaves(list(param.enum)), *_leaves(param.default)]
    tasks = list(tasks)
    turns = [turn for task in tasks for turn in task.turns]
    values = {leaf for turn in turns for call in turn.gold for leaf in _leaves(dict(call.arguments))}
    gold = [words(value) for value in sorted(values)]
    sources = {_padded(words(text)) for text in texts}
    return Guard(
        allowed=frozenset(word for source in sources for word in source.split()),
        sources=tuple(sorted(sources)),
        gold=frozenset(word for value in gold for word in value),
        gold_phrases=frozenset(_padded(value) for value in gold if len(value) > 1),
        hidden=frozenset(w for task in tasks for leaf in _leaves(dict(task.initial_state)) for w in words(leaf)),
        messages=tuple(sorted({_padded(words(turn.message)) for turn in turns})),
    )
