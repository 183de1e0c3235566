"""A label of a turn, and which of a turn's labels is its primary one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from seal.core.errors import ParamError
from seal.core.labels import DEFAULT_PRIORITY, NOT_THE_POLICY, Label
from seal.core.types import Diagnosis, Json

LEARNED = "learned"
FROM_ROLLOUTS = ("frequency", LEARNED)  # from a round's rollouts: seal.diagnose.label_worth
NAMED = ("fixed", *FROM_ROLLOUTS)
CERTAIN = 0.5  # a finding below this is primary only where there is no other


@dataclass(frozen=True, slots=True)
class Finding:
    """A label of a turn, before one is made primary. `confidence` in (0, 1]; `step` -1: the turn as a whole."""

    label: Label
    detail: str = ""
    tool: str = ""
    parameter: str = ""
    step: int = -1
    confidence: float = 1.0
    evidence: Mapping[str, Json] = field(default_factory=dict)


def parse_priority(names: Sequence[str] | str) -> tuple[Label, ...]:
    """A full order of failures: the named ones first, the others after them in their default order.

    An order with a name (NAMED) is the default one here: what data make of it is in seal.diagnose.label_worth.

    Raises ParamError for a name that is no failure label, or one that occurs twice.
    """
    if isinstance(names, str) and names in NAMED:
        return DEFAULT_PRIORITY
    known = {label.value: label for label in DEFAULT_PRIORITY}
    for name in names:
        if name not in known or list(names).count(name) > 1:
            raise ParamError("diagnose.priority", name, f"each of these at most once: {', '.join(known)}")
    named = [known[name] for name in names]
    return (*named, *(label for label in DEFAULT_PRIORITY if label not in named))


def labels_of(
    turn: int,
    findings: Sequence[Finding],
    priority: Sequence[Label] = DEFAULT_PRIORITY,
    source: int | None = None,
    trust: float = 1.0,
) -> list[Diagnosis]:
    """The labels of a turn, the primary one first.

    `source`: the earlier turn that this one follows from; None: it is a root. `trust`: confidence of the verdict.
    """
    first, more = primary(findings, priority), {} if source is None else {"from_turn": source}
    return [
        Diagnosis(
            *(turn, f.label.value, f.detail, i == first, source is None, f.tool, f.parameter, f.step),
            evidence={**f.evidence, **more},
            confidence=f.confidence * trust,
        )
        for i, f in sorted(enumerate(findings), key=lambda pair: pair[0] != first)
    ]


def primary(findings: Sequence[Finding], priority: Sequence[Label] = DEFAULT_PRIORITY) -> int:
    """Index of the primary finding: what is not the policy's fault first, then the first label of the priority.

    Labels that the priority does not name come after it in their default order. Among findings of one label the surest
    wins, then the earliest.
    """
    if len(findings) == 1:
        return 0
    rank = _rank(tuple(priority))

    def order(i: int) -> tuple[bool, bool, int, float, int]:
        finding = findings[i]
        of_policy = finding.label not in NOT_THE_POLICY
        return of_policy, finding.confidence < CERTAIN, rank.get(finding.label, len(rank)), -finding.confidence, i

    return min(range(len(findings)), key=order)


@lru_cache(maxsize=64)
def _rank(priority: tuple[str, ...]) -> dict[str, int]:
    return {label: i for i, label in enumerate(dict.fromkeys((*priority, *DEFAULT_PRIORITY)))}
