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
    name. Templates keep theirs, since their placeholders are filled later.
    """
    if item.kind in (wording.RECOVER_ANY_KIND, wording.CALL_FORMAT_KIND):
        return ""
    text = rewrite(item)
    new = replace(guard, allowed=guard.allowed | GLUE)
    same = text != item.text and is_one_line(text) and _keeps(item, text) and not new.reasons(replace(item, text=text))
    return text if same else ""


def _keeps(item: Item, text: str) -> bool:
    """Whether some reading of the text is the item's words with nothing but small words about them."""
    given, content = text.split(), item.text.split()
    starts = [i for i, word in enumerate(given) if _same(word, content[0])]
    return any(_reads_from(start, given, content, words(item.target)) for start in starts)


def _reads_from(start: int, given: list[str], content: list[str], target: list[str]) -> bool:
    places, i = [], start
    for word in content:
        while i < len(given) and not _same(given[i], word):
            i += 1
        places.append(i)
        i += 1
    if places[-1] >= len(given):
        return False
    between = [word for a, b in pairwise(places) for word in given[a + 1 : b]]
    around = given[:start] + given[places[-1] + 1 :]
    return all(_adds_nothing(word, ()) for word in between) and all(_adds_nothing(word, target) for word in around)


def _same(given: str, word: str) -> bool:
    return word in (given, given.strip(_MARKS), given.rstrip(_MARKS))


def _adds_nothing(given: str, target: list[str] | tuple[()]) -> bool:
    """Also no sign that could mean something (`!=`, `->`)."""
    plain = all(letter.isalnum() or letter in f"{_MARKS}_" for letter in given)
    return plain and all(word in GLUE or word in target for word in words(given))
