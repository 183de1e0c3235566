"""The official memory classes, from the installed package's own source, without the files they keep between tests.

Each module's imports are replaced by what is given here: importing them as they stand would load bfcl_eval.utils (which
makes folders beside the package) and, for vectors, download a model. A snapshot is what the official files hold.
"""

import ast
import inspect
import json
import re
from copy import deepcopy
from functools import cache
from types import MappingProxyType
from typing import Any

from seal.core.errors import DependencyError, ParamError
from seal.core.types import Json
from seal.env.bfcl.package import root

BACKENDS = ("kv", "rec_sum", "vector")
PARTS = MappingProxyType(
    {
        "kv": ("core_memory", "archival_memory"),
        "vector": ("core_memory", "archival_memory"),
        "rec_sum": ("memory",),
    }
)


class MemoryAPI:
    """Stands in for the official base class: a scenario is a snapshot, or empty for the first conversation."""

    def _prepare_snapshot(self, initial_config: Json) -> Json | None:
        return initial_config or None


def memory(backend: str, snapshot: Json) -> Any:
    """A fresh instance of the backend's class that remembers the snapshot ({}: nothing)."""
    instance = _class(backend)()
    instance._load_scenario(snapshot)
    return instance


def snapshot_of(backend: str, instance: Any) -> dict[str, Json]:
    """What the instance remembers, as JSON: a copy."""
    values = {part: getattr(instance, part) for part in PARTS[backend]}
    plain = {part: value.export() if hasattr(value, "export") else value for part, value in values.items()}
    return json.loads(json.dumps(plain))


def context_of(instance: Any) -> str:
    """What the policy sees of the memory without a call, in the official words."""
    return instance._dump_core_memory_to_context()


@cache
def tools_of(backend: str) -> dict[str, tuple[str, ...]]:
    """`{tool: parameters in positional order}`."""
    methods = inspect.getmembers(_class(backend), inspect.isfunction)
    return {tool: tuple(inspect.signature(f).parameters)[1:] for tool, f in methods if not tool.startswith("_")}


@cache
def _class(backend: str) -> type:
    if backend not in BACKENDS:
        raise ParamError("memory backend", backend, f"known backends: {', '.join(BACKENDS)}")
    path = root() / "eval_checker" / "multi_turn_eval" / "func_source_code" / f"memory_{backend}.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
    space = {"__name__": f"memory_{backend}", **_imports(backend)}
    exec(compile(tree, path.name, "exec"), space)  # the installed package's own source, never text of a policy
    return space[f"MemoryAPI_{backend}"]


def _imports(backend: str) -> dict[str, Any]:
    import typing

    names = {name: getattr(typing, name) for name in ("Dict", "List", "Optional", "Tuple")}
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
