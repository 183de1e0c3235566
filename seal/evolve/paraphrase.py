"""Another wording of a cue: all that it says, as it stands, and little words around it. Anything else could turn it
round: a model that writes `verify` for `after verify`, or the codes of `damaged K3 late K7` the other way, is not
believed."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from seal.evolve.guard import Guard, words
from seal.interface import wording
from seal.interface.state import Item, is_one_line

Rewrite = Callable[[Item], str]
# Words that tell nothing and turn nothing round: no `not`, `before` or `after`; no `or`, no `to` between two codes.
GLUE = frozenset(
    "a an the this that these it its is are be been has have must should need needs do does only always and if when "
    "where which who of in on with by for as at use call give pass make run set one all each value values parameter "
    "argument tool field".split()
)
_MARKS = ".,;:!?()\"'`"  # of a sentence, around a word of the cue


def paraphrase(item: Item, rewrite: Rewrite, guard: Guard) -> str:
    """Another wording of the item; "" where there is none that says the same.

    It holds the words of the item in their order and case, between them GLUE alone, around them GLUE and the target's
    name. Templates keep theirs, since their slots are filled later.
    """
    if item.kind in (wording.RECOVER_ANY_KIND, wording.CALL_FORMAT_KIND):
        return ""
    text = rewrite(item)
    new = replace(guard, allowed=guard.allowed | GLUE)
    same = text != item.text and is_one_line(text) and _says(item, text) and not new.reasons(replace(item, text=text))
    return text if same else ""


def _says(item: Item, text: str) -> bool:
    """Whether some reading of the text is the item's words with nothing but small words about them."""
    said, content = text.split(), item.text.split()
    starts = [i for i, word in enumerate(said) if _is(word, content[0])]
    return any(_from(start, said, content, words(item.target)) for start in starts)


def _from(start: int, said: list[str], content: list[str], target: list[str]) -> bool:
    places, i = [], start
    for word in content:
        while i < len(said) and not _is(said[i], word):
            i += 1
        places.append(i)
        i += 1
    if places[-1] >= len(said):
        return False
    between = [word for a, b in pairwise(places) for word in said[a + 1 : b]]
    around = said[:start] + said[places[-1] + 1 :]
    return all(_small(word, ()) for word in between) and all(_small(word, target) for word in around)


def _is(said: str, word: str) -> bool:
    return word in (said, said.strip(_MARKS), said.rstrip(_MARKS))


def _small(said: str, target: list[str] | tuple[()]) -> bool:
    """Also no sign that could mean something (`!=`, `->`)."""
    plain = all(letter.isalnum() or letter in f"{_MARKS}_" for letter in said)
    return plain and all(word in GLUE or word in target for word in words(said))
