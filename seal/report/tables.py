"""Cells of tables, how numbers stand in them, and the table of all rounds' results."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seal.report.rounds import Round, load_rounds

Cells = tuple[Sequence[str], Sequence[Sequence[str]], Sequence[int]]  # head, rows, places that align left
HEAD = (
    *("round", "parent", "strict", "95%", "gain", "95%", "dev", "on", "on-off", "cues", "rollouts", "tokens"),
    "labels that moved",
)
NONE = "-"


def results_table(root: Path = Path(), movers: int = 2) -> str:
    """One line a round: scores in percent, differences in points. Raises ArtifactError when nothing is evaluated."""
    rounds = load_rounds(root)
    table = text_table(*results_cells(rounds, movers))
    return "\n".join([table, LEGEND, *clean_scores(rounds), *do_nothing_scores(rounds)])


LEGEND = (
    "strict: share of test tasks solved, interface off; gain: paired difference to the parent; on-off: what the\n"
    "interface still adds; cues: active (+ new - gone); rollouts, tokens: of training since the start; labels that\n"
    "moved: change in points of the user turns that fail so"
)


def results_cells(rounds: Sequence[Round], movers: int = 2) -> Cells:
    """A row a round."""
    by_id = {r.id: r for r in rounds}
    rows = [_row(r, by_id[r.parent].metrics if r.parent in by_id else None, movers) for r in rounds]
    return HEAD, rows, (0, 1, len(HEAD) - 1)


def clean_scores(rounds: Sequence[Round]) -> list[str]:
    """One line with the strict scores without the tasks known to be bad; none where no such task was played."""
    scores = [(r.id, r.metrics["clean"]) for r in rounds if "clean" in r.metrics]
    listed = ", ".join(f"{id_} {score(clean)} of {clean['n']}" for id_, clean in scores)
    return [f"strict without tasks known to be bad: {listed}"] if listed else []


def do_nothing_scores(rounds: Sequence[Round]) -> list[str]:
    """One line with what a policy that does nothing scores on the same tasks; none where that was not measured."""
    scores = [(r.id, r.metrics["do_nothing"]) for r in rounds if "do_nothing" in r.metrics]
    listed = ", ".join(f"{id_} {points(nothing)} of {nothing['n']}" for id_, nothing in scores)
    return [f"doing nothing scores: {listed}"] if listed else []


def _row(r: Round, parent: Mapping[str, Any] | None, movers: int) -> tuple[str, ...]:
    m, gain = r.metrics, r.metrics.get("gain", {}).get("parent")
    cues = m["interface"]
    changed = f" (+{cues['added']} -{cues['retired']})" if parent else ""
    moved = label_movers(m.get("labels", {}), parent.get("labels", {}), movers) if parent else []
    scores = points(m["strict"]), interval(m["strict"])
    change = (points(gain, "+"), interval(gain, "+")) if gain else (NONE if parent else "start", "")
    others = points(m.get("dev")), points(m.get("on")), points(m.get("mismatch"), "+")
    cost = f"{m['total']['rollouts']:,}", compact(m["total"]["tokens"])
    shifts = ", ".join(f"{label} {100 * shift:+.1f}" for label, shift in moved) or NONE
    return (r.id, r.parent or NONE, *scores, *change, *others, f"{cues['active']}{changed}", *cost, shifts)


def label_movers(now: Mapping[str, float], before: Mapping[str, float], most: int) -> list[tuple[str, float]]:
    """(label, change of its rate), the largest changes first; changes below half a point are left out."""
    shifts = {label: now.get(label, 0.0) - before.get(label, 0.0) for label in now.keys() | before.keys()}
    moved = [(label, shift) for label, shift in shifts.items() if abs(shift) >= 0.005]
    return sorted(moved, key=lambda pair: (-abs(pair[1]), pair[0]))[:most]


def points(estimate: Mapping[str, float] | None, sign: str = "") -> str:
    """The mean in percent."""
    return f"{100 * estimate['mean']:{sign}.1f}" if estimate and estimate.get("n", 1) else NONE


def interval(estimate: Mapping[str, float] | None, sign: str = "") -> str:
    """Its interval in percent."""
    return between(estimate["low"], estimate["high"], sign) if estimate and estimate.get("n", 1) else ""


def score(estimate: Mapping[str, float] | None, sign: str = "") -> str:
    """The mean and its interval in percent."""
    return f"{points(estimate, sign)} {interval(estimate, sign)}"


def between(low: float, high: float, sign: str = "") -> str:
    """Both ends in percent."""
    return f"[{100 * low:{sign}.1f}, {100 * high:{sign}.1f}]"


def compact(n: int) -> str:
    """1234567 -> 1.2M."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if n >= size:
            return f"{n / size:.1f}{unit}"
    return str(n)


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Aligned columns under a ruled head; those in `left` align left, all others right."""
    widths = [max(len(str(row[i])) for row in (head, *rows)) for i in range(len(head))]
    lines = [
        "  ".join(
            f"{cell:<{w}}" if i in left else f"{cell:>{w}}" for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in (head, *rows)
    ]
    return "\n".join([lines[0].rstrip(), "-" * max(map(len, lines)), *(line.rstrip() for line in lines[1:])])
