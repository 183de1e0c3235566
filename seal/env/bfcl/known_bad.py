"""Tasks whose reference is wrong or whose wording leaves the answer open: kept, scored as officially, told apart.

The table is `known_bad.json`. Its kinds: *unsolvable* (no policy that keeps to the tools in sight can pass), *wrong*
(the reference contradicts the request), *ambiguous* (a right answer can fail). `told` is what the request asks for in
place of an argument of the reference; the tests play it and see it fail.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

KINDS = ("unsolvable", "wrong", "ambiguous")


@cache
def known_bad(package: str = "seal.env.bfcl") -> Mapping[str, str]:
    """Task id -> "<kind>: <reason>", by the table of an environment's package."""
    table = json.loads(files(package).joinpath("known_bad.json").read_text())
    return MappingProxyType(
        {id_: f"{entry['kind']}: {entry['reason']}" for entry in table["entries"] for id_ in entry["tasks"]}
    )
