"""Order of operations learned from executions: "X was refused until Y had succeeded", with counts.

Only tool names and error kinds are read, never a value. Refusals are errors of kind precondition or permission.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

from seal.core.statistics import score_interval
from seal.core.types import REFUSALS, Order, Rollout

Z_90 = 1.645  # quantile of the normal, of a two-sided 90% interval
Execution = tuple[str, str]  # tool, error kind ("" when it succeeded)


def executions_of(rollout: Rollout) -> list[Execution]:
    """(tool, error kind) of every executed call, in order."""
    ran = (pair for step in rollout.steps for pair in zip(step.calls, step.results, strict=True))
    return [(call.name, result.error_kind) for call, result in ran]


def find_orders(
    executions: Iterable[Sequence[Execution]], min_support: int = 2, min_confidence: float = 0.4
) -> list[Order]:
    """Orders with enough support and confidence; rivals for one tool remain if they have half the best support."""
    flips: Counter[tuple[str, str, str]] = Counter()
    against: Counter[tuple[str, str]] = Counter()
    firsts: list[tuple[str, frozenset[str]]] = []  # tool, what had succeeded before its first success
    tools: set[str] = set()
    for episode in executions:
        refused: dict[str, tuple[str, set[str]]] = {}  # tool -> kind of its last refusal, what succeeded since
        done: set[str] = set()
        for tool, kind in episode:
            tools.add(tool)
            if kind in REFUSALS:
                refused[tool] = (kind, set())
            elif not kind:
                if tool not in done:
                    firsts.append((tool, frozenset(done)))
                error_kind, since = refused.pop(tool, ("", set()))
                flips.update((tool, other, error_kind) for other in since - {tool})
                for _, succeeded in refused.values():
                    succeeded.add(tool)
                done.add(tool)
    for tool, before in firsts:
        against.update((tool, other) for other in tools - before - {tool})
    found = []
    for (tool, other, kind), n in sorted(flips.items()):
        confidence = score_interval(n, n + against[tool, other], Z_90)[0]
        if n >= min_support and confidence >= min_confidence:
            found.append(Order(tool, other, kind, n, against[tool, other], confidence))
    best = {m.tool: max(rival.support for rival in found if rival.tool == m.tool) for m in found}
    kept = [m for m in found if 2 * m.support >= best[m.tool]]
    return sorted(kept, key=lambda m: (m.tool, -m.support, m.prerequisite, m.error_kind))
