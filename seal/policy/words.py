"""The nano policy's tokenizer and codec: one token a word over a closed lexicon."""

import re
from collections.abc import Iterable, Sequence

from seal.core.types import ToolDoc
from seal.env import lexicon

SPECIAL = ("<pad>", "<unk>", "<end>", "<tool>", "<hint>", "<user>", "<act>", "<res>")
PAD, UNK, END, TOOL, HINT, USER, ACT, RES = range(len(SPECIAL))
_WORD = re.compile(r"[^\s=]+=|[A-Z]+-(?=\d)|[A-Z]+-(?=\s|$)|\S+")


def build_vocabulary() -> tuple[str, ...]:
    """All words in a fixed order without repeats; the position is the id."""
    words = [*SPECIAL, *lexicon.GRAMMAR, *lexicon.CODES, *lexicon.PREFIXES, *lexicon.IDS, *lexicon.STATUSES]
    words += [*lexicon.NOUNS, *(f"{noun}=" for noun in lexicon.NOUNS), *lexicon.TOOL_NAMES]
    words += [*lexicon.INTENTS, *lexicon.CHOICES, *lexicon.FILLERS]
    return tuple(dict.fromkeys(words))


def join(words: Iterable[str]) -> str:
    """Words to text: no space after `name=` and after a prefix such as `ORD-` that an id follows."""
    text = " ".join(words)
    return re.sub(r"(?<=[A-Z]-) (?=\d)", "", re.sub(r"(?<==) ", "", text))


class WordCodec:
    """Codec over the vocabulary. Words outside it become <unk>; nothing a built-in domain says is outside."""

    format = "words"

    def __init__(self, vocabulary: Sequence[str]):
        self.vocabulary = tuple(vocabulary)
        self._id = {word: i for i, word in enumerate(self.vocabulary)}

    def encode(self, text: str) -> list[int]:
        return [self._id.get(word, UNK) for word in _WORD.findall(text)]

    def decode(self, ids: Sequence[int]) -> str:
        """Ids beyond the vocabulary (the embedding is padded to a round size) read as <unk>."""
        words = (self.vocabulary[i] if i < len(self.vocabulary) else "<unk>" for i in ids if i not in (PAD, END))
        return join(words)

    def _docs(self, docs: Sequence[ToolDoc]) -> list[int]:
        words: list[str] = []
        for doc in docs:
            words += ["<tool>", doc.description, *(note.text for note in doc.notes if not note.param), doc.name]
            for param in doc.params:
                words += [f"{param.name}=", *(note.text for note in doc.notes if note.param == param.name)]
        return self.encode(" ".join(words))

    def prompt(self, docs: Sequence[ToolDoc], hints: Sequence[str]) -> list[int]:
        return self._docs(docs) + [i for hint in hints for i in (HINT, *self.encode(hint))]

    def user(self, message: str, revealed: Sequence[ToolDoc]) -> list[int]:
        return [USER, *self.encode(message), *self._docs(revealed), ACT]

    def results(self, shown: Sequence[str]) -> list[int]:
        return [RES, *self.encode(" ; ".join(shown)), ACT]

    def encode_action(self, text: str) -> list[int]:
        return [*self.encode(text), END]

    def count(self, text: str) -> int:
        return len(text.split())
