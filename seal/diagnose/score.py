"""How often the diagnosis is right about injected faults: confusion, F1, the right turn, right turns blamed."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from seal.diagnose.inject import Case


@dataclass(frozen=True, slots=True)
class Score:
    """`confusion` counts (expected, predicted) primary labels at the faulty turn, over faults that flip a verdict.

    apart             (kind, predicted) of faults that flip none
    turn_found        share of faults whose turn is the first root failure
    blamed            share of right turns (of faults and of controls) with a root failure as primary label
    labels_present    share of faults all of whose expected labels are among the labels of the turn
    """

    confusion: Counter[tuple[str, str]]
    apart: Counter[tuple[str, str]]
    n: int
    turn_found: float
    blamed: float
    labels_present: float

    @property
    def labels(self) -> list[str]:
        return sorted({label for pair in self.confusion for label in pair})

    def f1(self, label: str) -> float:
        """F1 of one label, 0 where it was never predicted."""
        expected = sum(n for (truth, _), n in self.confusion.items() if truth == label)
        predicted = sum(n for (_, said), n in self.confusion.items() if said == label)
        return 2 * self.confusion[label, label] / (expected + predicted) if expected + predicted else 0.0

    @property
    def macro_f1(self) -> float:
        """Mean F1 over the labels that were expected at least once."""
        expected = sorted({truth for truth, _ in self.confusion})
        return sum(map(self.f1, expected)) / len(expected) if expected else 0.0


def score(cases: Iterable[Case]) -> Score:
    """Count. Pure."""
    confusion: Counter[tuple[str, str]] = Counter()
    apart: Counter[tuple[str, str]] = Counter()
    n = found = blamed = right = present = 0
    for case in cases:
        blamed += case.blamed
        right += case.right_turns
        injected = case.injected
        if not injected.expected:
            continue
        if not injected.flips:
            apart[injected.kind, case.predicted] += 1
            continue
        n += 1
        confusion[injected.expected[0].value, case.predicted] += 1
        found += case.found_turn == injected.turn
        present += set(map(str, injected.expected)) <= set(case.labels)
    return Score(
        confusion,
        apart,
        n,
        turn_found=found / n if n else 0.0,
        blamed=blamed / right if right else 0.0,
        labels_present=present / n if n else 0.0,
    )


def table(result: Score) -> str:
    """The confusion matrix as text: a row an expected label, a column a predicted one, F1 at the end."""
    names = result.labels
    width = max(map(len, names), default=0)
    lines = [" " * width + "".join(f"  {name[:9]:>9}" for name in names) + "       F1"]
    for truth in names:
        cells = "".join(f"  {result.confusion[truth, said] or '.':>9}" for said in names)
        lines.append(f"{truth:<{width}}{cells}   {result.f1(truth):6.3f}")
    return "\n".join(lines)
