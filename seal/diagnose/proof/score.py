"""How often the diagnosis is right about injected faults: confusion, F1, the right turn, right turns blamed.

The outcome of a proof is a table of counts (`Row`, a CSV file); every figure is computed from it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path

from seal.core.errors import ArtifactError
from seal.diagnose.proof.inject import Case, Pair
from seal.store.files import atomic_file, read_csv, write_csv

FAULT, APART, CONTROL, PAIR = "fault", "apart", "control", "pair"


@dataclass(frozen=True, slots=True, order=True)
class Row:
    """`n` trajectories of one environment and kind with one outcome.

    case         fault: a verdict flips; apart: a fault that flips none; control: no fault; pair: two faults at once
    expected     primary label at the faulty turn ("" for a control; both labels of a pair)
    found        the primary label that was given there (of a pair: which of the two are there as roots)
    turn_found   of the n, the faulty turn is the first root failure
    all_labels   of the n, every expected label is among the labels of the turn
    right_turns  turns without a fault; blamed: those of them with a root failure as primary label
    """

    env: str
    case: str
    kind: str
    expected: str
    found: str
    n: int
    turn_found: int
    all_labels: int
    right_turns: int
    blamed: int


NAMES = tuple(item.name for item in fields(Row))


def tally(env: str, cases: Iterable[Case], pairs: Iterable[Pair] = ()) -> list[Row]:
    """Counts, sorted. Pure."""
    sums: dict[tuple[str, ...], list[int]] = {}

    def add(key: tuple[str, ...], *numbers: int) -> None:
        sums[key] = [a + b for a, b in zip(sums.get(key, [0] * 5), (1, *numbers), strict=True)]

    for case in cases:
        injected, labels = case.injected, set(map(str, case.injected.expected))
        kind = CONTROL if not labels else FAULT if injected.flips else APART
        expected = injected.expected[0].value if labels else ""
        found_turn = int(bool(labels) and case.found_turn == injected.turn)
        numbers = (found_turn, int(labels <= set(case.labels)), case.right_turns, case.blamed)
        add((env, kind, injected.kind, expected, case.predicted), *numbers)
    for pair in pairs:
        where = "one turn" if pair.turns[0] == pair.turns[1] else "two turns"
        add((env, PAIR, where, " + ".join(sorted(pair.expected)), " + ".join(sorted(pair.present))), 0, pair.both, 0, 0)
    return [Row(*key, *numbers) for key, numbers in sorted(sums.items())]


@dataclass(frozen=True)
class Score:
    """Figures of the rows of one proof, or of a part of them."""

    rows: Sequence[Row]

    @cached_property
    def confusion(self) -> Counter[tuple[str, str]]:
        """(expected, found) primary labels at the faulty turn, of faults that flip a verdict."""
        counts: Counter[tuple[str, str]] = Counter()
        for row in self._of(FAULT):
            counts[row.expected, row.found] += row.n
        return counts

    def count(self, case: str) -> int:
        return sum(row.n for row in self._of(case))

    @property
    def labels(self) -> list[str]:
        return sorted({label for pair in self.confusion for label in pair})

    def f1(self, label: str) -> float:
        """F1 of one label, 0 where it was never found."""
        expected = sum(n for (truth, _), n in self.confusion.items() if truth == label)
        predicted = sum(n for (_, found), n in self.confusion.items() if found == label)
        return 2 * self.confusion[label, label] / (expected + predicted) if expected + predicted else 0.0

    @property
    def macro_f1(self) -> float:
        """Mean F1 over the labels that were expected at least once."""
        expected = sorted({truth for truth, _ in self.confusion})
        return sum(map(self.f1, expected)) / len(expected) if expected else 0.0

    @property
    def turn_found(self) -> float:
        """Share of faults that flip a verdict whose turn is the first root failure."""
        return self._share(FAULT, lambda row: row.turn_found)

    @property
    def all_labels(self) -> float:
        return self._share(FAULT, lambda row: row.all_labels)

    @property
    def both(self) -> float:
        """Share of pairs of which both labels are there."""
        return self._share(PAIR, lambda row: row.all_labels)

    @property
    def blamed(self) -> float:
        """Share of right turns, of faults and of controls, with a root failure as primary label."""
        right = sum(row.right_turns for row in self.rows)
        return sum(row.blamed for row in self.rows) / right if right else 0.0

    def _of(self, case: str) -> list[Row]:
        return [row for row in self.rows if row.case == case]

    def _share(self, case: str, hits: Callable[[Row], int]) -> float:
        n = self.count(case)
        return sum(map(hits, self._of(case))) / n if n else 0.0


def table(result: Score) -> str:
    """The confusion matrix as text: a row an expected label, a column one that was found, F1 at the end."""
    names = result.labels
    width = max(map(len, names), default=0)
    lines = [" " * width + "".join(f"  {name[:9]:>9}" for name in names) + "       F1"]
    for truth in names:
        cells = "".join(f"  {result.confusion[truth, found] or '.':>9}" for found in names)
        lines.append(f"{truth:<{width}}{cells}   {result.f1(truth):6.3f}")
    return "\n".join(lines)


def summary(rows: Sequence[Row]) -> str:
    """Every figure of the rows, with their confusion matrix."""
    result = Score(rows)
    faults, apart, controls = (result.count(case) for case in (FAULT, APART, CONTROL))
    lines = [
        f"{faults + apart + controls:,} trajectories, {faults:,} faults that flip a verdict",
        table(result),
        f"  macro-F1 of the primary label   {result.macro_f1:.4f}",
        f"  all expected labels present     {result.all_labels:.4f}",
        f"  right turn found                {result.turn_found:.4f}",
        f"  right turns blamed              {result.blamed:.4%}",
    ]
    if n := result.count(PAIR):
        lines.append(f"  two faults, both labels         {result.both:.4f}  ({n:,} pairs)")
    lines.append(f"  flip no verdict, counted apart  {apart:,}; controls without a fault {controls:,}")
    return "\n".join(lines)


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    with atomic_file(path) as partial:
        write_csv(partial, [asdict(row) for row in sorted(rows)], NAMES)


def read_rows(path: Path) -> list[Row]:
    """Raises ArtifactError for a file that is no such table."""
    try:
        rows = [tuple(line[name] for name in NAMES) for line in read_csv(path)]
        return [Row(*row[:5], *map(int, row[5:])) for row in rows]
    except (OSError, KeyError, ValueError, TypeError) as error:
        remedy = f"write it again: seal diagnose --inject --n 0 --output {path}"
        raise ArtifactError("table of injected faults", f"{path}: {error!r}", remedy) from None
