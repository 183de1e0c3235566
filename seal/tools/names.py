"""Names of tools and parameters as MCP and JSON Schema allow them, and how they are read in calls written in Python.

There `get-x(...)` is a difference and `from=` a fault, so that such names are marked before and named after.
"""

import ast
import keyword
import re
import unicodedata
from zlib import crc32

from seal.tools.schema import Signature

# Letters, digits and signs of any script, and of ASCII's others: _ - . / : @ $
NAME = re.compile(r"[^\s\x00-#%-,;-?\[-^`{-\x9f\ud800-\udfff]+")
STRING = r"""(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"|'[^'\\]*+(?:\\.[^'\\]*+)*+')"""
QUOTED = rf"(?<!\w){STRING}(?!\w)"  # in any text: an apostrophe inside a word opens and closes nothing
_TOKEN = re.compile(rf"(?<!\w)[a-zA-Z]{{0,2}}{STRING}|\\.|({NAME.pattern}+)(\s*+(?:\(|=(?!=)))?", re.DOTALL)


def plain(name: str) -> bool:
    """Whether Python reads it as a name, and as this one."""
    return name.isidentifier() and not keyword.iskeyword(name) and unicodedata.normalize("NFKC", name) == name


def marked(text: str, signature: Signature) -> tuple[str, dict[str, str]]:
    """The text with other names than plain ones marked, and what each mark stands for.

    A signature says which such names there are; without one, any that is called or given a value may be.
    """
    known = {name for tool, parameters in signature.items() for name in (tool, *parameters) if not plain(name)}
    names: dict[str, str] = {}
    if signature and not known:
        return text, names

    own = f"name_{crc32(text.encode(errors='replace')):x}_"  # as good as never a part of the text

    def mark(match: re.Match) -> str:
        name, sign = match[1], match[2]
        if not sign or plain(name) or (signature and name not in known):
            return match[0]
        names[f"{own}{len(names)}_"] = name
        return f"{own}{len(names) - 1}_{sign}"

    return _TOKEN.sub(mark, text), names


def name_again(tree: ast.expr, names: dict[str, str]) -> bool:
    """Give what was marked its own name; False where a mark stands for no name, but inside a text."""
    found = 0
    for node in ast.walk(tree) if names else ():
        if isinstance(node, ast.Name) and node.id in names:
            node.id, found = names[node.id], found + 1
        elif isinstance(node, ast.keyword) and node.arg in names:
            node.arg, found = names[node.arg], found + 1
    return found == len(names)
