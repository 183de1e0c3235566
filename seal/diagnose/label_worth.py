"""What repairing a label would be worth, and the priorities that are drawn from data.

A root failing turn has one or more labels. For each the turn is played again with that fault alone repaired, all other
turns as they were, and the verdicts that flip are counted (seal.diagnose.repair, offline through the verifier).
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from seal.core.errors import ParamError
from seal.core.judged import Judged, bare_or_all
from seal.core.labels import DEFAULT_PRIORITY, FAILURES, Label
from seal.core.types import Diagnosis, Verdict
from seal.diagnose.diagnosis import Diagnoser
from seal.diagnose.judge import label as label_all
from seal.diagnose.primary_label import CERTAIN, FROM_ROLLOUTS, LEARNED, parse_priority
from seal.diagnose.repair import repaired
from seal.env.base import Environment
from seal.verify.turns import verify

SUPPORT = 5  # turns at the mean of all labels that every label is given beforehand, so that few turns decide little


@dataclass(frozen=True, slots=True)
class Worth:
    """Of a label: root failing turns that carry it, verdicts that their repairs turn right."""

    turns: int = 0
    flips: int = 0

    @property
    def mean(self) -> float:
        """Verdicts that flip per turn that carries the label; 0 for none."""
        return self.flips / self.turns if self.turns else 0.0


def worth(env: Environment, judged: Iterable[Judged]) -> dict[Label, Worth]:
    """What a repair of each label flips, by label in the default order. Of a bare verdict without calls: nothing."""
    tasks = {task.task_id: task for task in env.tasks()}
    counts: dict[Label, list[int]] = defaultdict(lambda: [0, 0])
    for j in judged:
        task = tasks[j.rollout.task_id]
        diagnoser = Diagnoser(env, task, j.rollout, j.verdicts)
        for (turn, label), rows in _faults(j.diagnoses).items():
            counts[label][0] += 1
            evidence = diagnoser.evidence(turn)
            calls = repaired(evidence, label, rows) if evidence else None
            if calls is not None:
                played = j.rollout.calls_by_turn(len(task.turns))
                played[turn] = calls
                counts[label][1] += _flips(j.verdicts, verify(env, task, played))
    return {label: Worth(*counts[label]) for label in DEFAULT_PRIORITY if label in counts}


def frequencies(judged: Iterable[Judged]) -> Counter[Label]:
    """Root failing turns that carry each label."""
    return Counter(label for j in judged for _, label in _faults(j.diagnoses))


def order_by(setting: str | Sequence[str], env: Environment, judged: Sequence[Judged]) -> tuple[Label, ...]:
    """The priority a setting means on these rollouts: a list and "fixed" are what they are; "frequency" puts the label
    most turns carry first, "learned" the one whose repair flips most verdicts a turn. Ties keep the default order."""
    if setting not in FROM_ROLLOUTS:
        return parse_priority(setting)
    if setting == LEARNED:
        if env.live:
            remedy = "use fixed or frequency: what its user would have answered to other calls is not known"
            raise ParamError("diagnose.priority", f"{LEARNED} on {env.name}", remedy)
        return by_worth(worth(env, judged))
    seen = frequencies(judged)
    return tuple(sorted(DEFAULT_PRIORITY, key=lambda label: -seen[label]))


def drawn_priority(setting: str | Sequence[str], env: Environment, judged: Sequence[Judged]) -> tuple[Label, ...]:
    """`order_by` over a round's collected rollouts: the bare ones (all, where none is), labelled in the default order,
    whatever labels they have."""
    if setting not in FROM_ROLLOUTS:
        return parse_priority(setting)
    return order_by(setting, env, label_all(env, bare_or_all(judged), DEFAULT_PRIORITY))


def by_worth(found: Mapping[Label, Worth]) -> tuple[Label, ...]:
    turns, flips = sum(w.turns for w in found.values()), sum(w.flips for w in found.values())
    prior = flips / turns if turns else 0.0

    def shrunken(label: Label) -> float:
        w = found.get(label, Worth())
        return (w.flips + SUPPORT * prior) / (w.turns + SUPPORT) if w.turns else -1.0

    return tuple(sorted(DEFAULT_PRIORITY, key=lambda label: -shrunken(label)))


def _faults(rows: Iterable[Diagnosis]) -> dict[tuple[int, Label], list[Diagnosis]]:
    """(turn, label) -> its sure rows, of root failures."""
    found: dict[tuple[int, Label], list[Diagnosis]] = defaultdict(list)
    for row in rows:
        if row.root and row.label in FAILURES and (row.primary or row.confidence >= CERTAIN):
            found[row.turn, Label(row.label)].append(row)
    return found


def _flips(before: Sequence[Verdict], after: Sequence[Verdict]) -> int:
    """Verdicts turned right minus those turned wrong."""
    was = {verdict.turn: verdict.valid for verdict in before}
    return sum(verdict.valid - was.get(verdict.turn, False) for verdict in after)
