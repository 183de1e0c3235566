"""A scripted note-taker: what it writes of each prerequisite conversation, by the backend's own tools.

It copies and never looks at a question or an answer. Where everything fits it keeps everything (kv, vector); where it
does not (rec_sum: 10,000 characters a scenario) each conversation gets an equal share, filled with the sentences that
hold most names and numbers.
"""

import re
from collections.abc import Sequence

from seal.core.types import Call

ENTRY = 2000  # characters of one archival entry
UNIFIED = 10_000  # characters of the whole rec_sum memory
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"[\w']+")
_PLAIN = frozenset(("I", "I'm", "I've", "I'd", "I'll"))


def scripted_notes(backend: str, topic: str, number: int, of: int, messages: Sequence[str]) -> tuple[Call, ...]:
    """The calls that note conversation `number` of `of`, whose user says `messages`."""
    if backend == "rec_sum":
        return (Call("memory_append", {"text": digest(messages, UNIFIED // of - 1) + "\n"}),)
    entries = packed(messages, ENTRY)
    if backend == "vector":
        return tuple(Call("archival_memory_add", {"text": text}) for text in entries)
    name = re.sub(r"[^a-z]+", "_", topic.lower()).strip("_")
    return tuple(
        Call("archival_memory_add", {"key": f"{name}_{number + 1}_{part + 1}", "value": text})
        for part, text in enumerate(entries)
    )


def packed(messages: Sequence[str], size: int) -> list[str]:
    """All sentences in order, in as few pieces of at most `size` characters as filling them up gives."""
    pieces: list[str] = []
    for sentence in _sentences(messages):
        sentence = sentence[:size]
        if pieces and len(pieces[-1]) + 1 + len(sentence) <= size:
            pieces[-1] += f" {sentence}"
        else:
            pieces.append(sentence)
    return pieces


def digest(messages: Sequence[str], size: int) -> str:
    """The sentences with most names and numbers for their length that fit in `size` characters, in their order."""
    sentences = _sentences(messages)
    chosen, used = [], 0
    for at in sorted(range(len(sentences)), key=lambda at: (-_density(sentences[at]), at)):
        if used + len(sentences[at]) + 1 <= size:
            chosen.append(at)
            used += len(sentences[at]) + 1
    return " ".join(sentences[at] for at in sorted(chosen))


def _sentences(messages: Sequence[str]) -> list[str]:
    return [sentence for message in messages for sentence in _SENTENCE.split(message) if sentence]


def _density(sentence: str) -> float:
    words = _WORD.findall(sentence)
    marked = (at for at, word in enumerate(words) if word[0].isdigit() or (at and word[0].isupper()))
    return sum(words[at] not in _PLAIN for at in marked) / len(sentence) ** 0.5
