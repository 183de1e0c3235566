"""Text of models and tools as people may be shown it: nothing in it steers a terminal or turns a page around."""


def printable(text: str, keep: str = "") -> str:
    """A text in which whatever is not printed is written out (an escape as \\x1b), but for the characters of `keep`.

    Lone surrogates are written out, too, so that any stream can take the text.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)


def printable_lines(text: str) -> str:
    """The same of a text of many lines."""
    return printable(text, keep="\n\t\xa0\u3000\u200d")
