"""One isolated memory: the official classes, from the installed package's own source, without the files they keep
between tests; literal calls in, result strings out as the official executor words them.

Each module's imports are replaced by what is given here: importing them as they stand would load bfcl_eval.utils (which
makes folders beside the package) and, for vectors, download a model. A snapshot is what the official files hold.
"""

import ast
import json
import re
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from typing import Any, Optional

from seal.core.errors import DependencyError, ParamError
from seal.core.types import Call, Json, Result
from seal.env.base import Session
from seal.env.bfcl.dispatch import FAILED, called, public_methods, result_of
from seal.env.bfcl.package import source_of

MAX_CHARACTERS = 1_000_000  # of a memory: the official replace would let 10,000 characters grow to 10^8 and on
BACKENDS = ("kv", "rec_sum", "vector")
_TWO_PARTS = ("core_memory", "archival_memory")
PARTS: Mapping[str, tuple[str, ...]] = {"kv": _TWO_PARTS, "vector": _TWO_PARTS, "rec_sum": ("memory",)}


class MemoryAPI:
    """Stands in for the official base class: a scenario is a snapshot, or empty for the first conversation."""

    def _prepare_snapshot(self, initial_config: Json) -> Json | None:
        return initial_config or None


class MemorySession(Session):
    """A memory of one backend, from a snapshot ({}: nothing is remembered)."""

    def __init__(self, backend: str, snapshot: Json):
        self._backend, self._memory = backend, _class(backend)()
        self._memory._load_scenario(snapshot)

    def call(self, call: Call) -> Result:
        if self._backend == "rec_sum" and call.name == "memory_replace" and self._grown(call) > MAX_CHARACTERS:
            return result_of(f"{FAILED}the memory would be longer than {MAX_CHARACTERS} characters", "other")
        return called(self._memory, tools_of(self._backend), call)

    def state(self) -> dict[str, Json]:
        """The snapshot, a copy: what a later conversation starts from."""
        values = {part: vars(self._memory)[part] for part in PARTS[self._backend]}
        return json.loads(json.dumps({k: v.export() if hasattr(v, "export") else v for k, v in values.items()}))

    def context(self) -> str:
        """What stands in the system prompt of a conversation that starts now, in the official words."""
        return self._memory._dump_core_memory_to_context()

    def _grown(self, call: Call) -> int:
        old, new = (str(call.arguments.get(name, "")) for name in ("old_text", "new_text"))
        text = self._memory.memory
        return len(text) + text.count(old) * len(new)


@cache
def tools_of(backend: str) -> dict[str, tuple[str, ...]]:
    """`{tool: parameters in positional order}`."""
    return public_methods(_class(backend))


@cache
def _class(backend: str) -> type:
    if backend not in BACKENDS:
        raise ParamError("memory backend", backend, f"known backends: {', '.join(BACKENDS)}")
    path = source_of(f"memory_{backend}")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    space = {"__name__": f"memory_{backend}", **_imports(backend)}
    exec(compile(tree, path.name, "exec"), space)  # the installed package's own source, never text of a policy
    return space[f"MemoryAPI_{backend}"]


def _imports(backend: str) -> dict[str, Any]:
    names: dict[str, Any] = {"Dict": dict, "List": list, "Optional": Optional, "Tuple": tuple}
    names |= {"json": json, "re": re, "deepcopy": deepcopy, "MemoryAPI": MemoryAPI}
    if backend == "kv":
        try:
            from rank_bm25 import BM25Plus
        except ImportError:
            raise DependencyError("package", "rank_bm25 is not installed", "pip install rank-bm25==0.2.2") from None
        return names | {"BM25Plus": BM25Plus}
    if backend == "vector":
        import numpy

        from seal.env.bfcl_memory import encoder

        return names | {"np": numpy, "faiss": encoder, "SentenceTransformer": encoder.SentenceTransformer}
    return names
