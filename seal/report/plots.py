"""The plots of runs, experiments and the proof of the diagnosis, as SVG text: the same bytes for the same numbers.

Imports matplotlib.
"""

import io
import re
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib import ticker
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

Interval = tuple[float, float, float]  # mean, low, high, as shares

STYLE = Path(__file__).with_name("plots.mplstyle")
GREY, GRID = "#7b8794", "#e4e7eb"
LINES = ("#0b6e99", "#c2571a", "#5b7f2b", "#8a4f9e", "#a3313f", "#3f6c51", "#b08900", "#5c6b7a", "#d06fa6", "#1b9e9e")
LABEL_COLOURS: Mapping[str, str] = {
    "invalid_tool_call": "#8c2d04",
    "argument_mismatch": "#d1701f",
    "constraint_violation": "#e8b04a",
    "recovery_failure": "#7a5195",
    "spurious_tool_call": "#b784a7",
    "missing_tool_call": "#2f6690",
    "state_mismatch": "#5fa8d3",
    "response_mismatch": "#a8d0db",
    "budget_exhausted": "#9aa5b1",
}


@dataclass(frozen=True, slots=True)
class Point:
    """One round on the learning curve; `rollouts` counts all training rollouts since the start. None: not measured."""

    round_id: str
    rollouts: int
    strict: Interval
    dev: Interval | None = None
    on: Interval | None = None


def learning_curve(lineages: Sequence[Sequence[Point]]) -> str:
    """Strict score over training rollouts, one line a lineage with its interval as a band, dev dashed.

    A lineage is drawn from where it leaves those before it, and ends in the name of its last round.
    """
    drawn: set[str] = set()
    with _figure("curve", 6.4, 3.4) as (axes, svg):
        for i, points in enumerate(lineages):
            shared = sum(point.round_id in drawn for point in points)
            drawn.update(point.round_id for point in points)
            points = points[max(0, shared - 1) :]
            colour, x = LINES[i % len(LINES)], [point.rollouts for point in points]
            mean, low, high = zip(*(point.strict for point in points), strict=True)
            axes.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.plot(
                x, mean, color=colour, marker="o", markersize=4, label="strict (test, interface off)" if not i else ""
            )
            dev = [(point.rollouts, point.dev[0]) for point in points if point.dev]
            if dev:
                style = {"color": colour, "linestyle": (0, (3, 2)), "linewidth": 1}
                axes.plot(*zip(*dev, strict=True), **style, label="dev" if not i else "")
            axes.annotate(
                points[-1].round_id, (x[-1], mean[-1]), (6, 0), textcoords="offset points", va="center", color=colour
            )
        axes.set_xlabel("training rollouts since the start")
        _percent(axes.yaxis)
        axes.set_ylim(0, _top(point.strict[2] for points in lineages for point in points))
        axes.xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
        axes.margins(x=0.08)
        if any(point.dev for points in lineages for point in points):
            axes.legend(loc="upper left", frameon=False)
    return svg[0]


def arm_curves(name: str, arms: Sequence[tuple[str, Sequence[tuple[float, Interval]]]]) -> str:
    """Score over training rollouts, a line an arm with whiskers; `arms`: each arm's name and (rollouts, score)."""
    with _figure(name, 6.4, 3.8) as (axes, svg):
        widest = max((x for _, points in arms for x, _ in points), default=1.0) or 1.0
        for i, (arm, points) in enumerate(arms):
            x = [x + (i - (len(arms) - 1) / 2) * widest / 250 for x, _ in points]  # apart, so that whiskers can be told
            mean, low, high = zip(*(score for _, score in points), strict=True)
            colour = LINES[i % len(LINES)]
            dashes = "-" if i < len(LINES) else (0, (3, 2))
            axes.vlines(x, low, high, color=colour, alpha=0.35, linewidth=1)
            axes.plot(x, mean, color=colour, marker="o", markersize=3.5, linestyle=dashes, label=arm)
        axes.set_xlabel("training rollouts since the start")
        axes.set_ylabel("strict score (test, interface off)")
        _percent(axes.yaxis)
        axes.set_ylim(0, _top(score[2] for _, points in arms for _, score in points))
        axes.xaxis.set_major_locator(ticker.MaxNLocator(6, integer=True))
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return svg[0]


def label_shift(rounds: Sequence[tuple[str, Mapping[str, float]]], name: str = "labels") -> str:
    """Stacked bars: the share of user turns of the bare test rollouts that fails by each (root, primary) label."""
    with _figure(name, 6.4, 3.4) as (axes, svg):
        base = [0.0] * len(rounds)
        names = [name for name, _ in rounds]
        known = [*LABEL_COLOURS, *sorted({label for _, shares in rounds for label in shares} - LABEL_COLOURS.keys())]
        for label in known:
            heights = [shares.get(label, 0.0) for _, shares in rounds]
            if any(heights):
                axes.bar(names, heights, 0.62, base, color=LABEL_COLOURS.get(label, GREY), label=label, linewidth=0)
                base = [b + h for b, h in zip(base, heights, strict=True)]
        _percent(axes.yaxis)
        axes.set_ylim(0, _top(base))
        axes.set_xlim(-0.6, max(len(names) - 0.4, 2.6))
        if sum(map(len, names)) > 40:
            axes.set_xticks(range(len(names)), names, rotation=35, ha="right")
        if any(base):
            handles, labels = axes.get_legend_handles_labels()
            axes.legend(handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return svg[0]


def mismatch(rounds: Sequence[tuple[str, Interval, Interval | None]]) -> str:
    """Per round the score without and with the interface, joined: what the policy still needs the crutch for."""
    with _figure("mismatch", 6.4, 0.9 + 0.42 * max(2, len(rounds))) as (axes, svg):
        for y, (_, off, on) in enumerate(rounds):
            if on:
                axes.plot([off[0], on[0]], [y, y], color=GRID, linewidth=4, solid_capstyle="round", zorder=1)
            for value, colour in ((off, LINES[0]), (on, LINES[1])):
                if value:
                    axes.plot(value[1:], [y, y], color=colour, linewidth=1, alpha=0.45, zorder=2)
                    axes.plot(value[0], y, "o", color=colour, markersize=6, zorder=3)
        for label, colour in (("interface off", LINES[0]), ("interface on", LINES[1])):
            axes.plot([], [], "o", color=colour, markersize=6, label=label)
        axes.set_yticks(range(len(rounds)), [name for name, _, _ in rounds])
        axes.set_ylim(len(rounds) - 0.5, -0.5)
        _percent(axes.xaxis)
        axes.set_xlim(0, _top(value[2] for _, *values in rounds for value in values if value))
        axes.grid(axis="x", color=GRID)
        axes.grid(axis="y", visible=False)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, borderaxespad=0.1)
    return svg[0]


def cue_uplift(cues: Sequence[tuple[str, Interval]]) -> str:
    """A forest of cues: difference in success with and without each, in the order given, with intervals."""
    with _figure("uplift", 6.4, 0.8 + 0.26 * max(2, len(cues))) as (axes, svg):
        axes.axvline(0, color=GREY, linewidth=1)
        for y, (_, (mean, low, high)) in enumerate(cues):
            colour = LINES[2] if low > 0 else LINES[4] if high < 0 else GREY
            axes.plot([low, high], [y, y], color=colour, linewidth=1.5)
            axes.plot(mean, y, "o", color=colour, markersize=5)
        axes.set_yticks(range(len(cues)), [_short(name) for name, _ in cues])
        axes.set_ylim(max(len(cues), 1) - 0.5, -0.5)
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{100 * x:+.0f}" if round(x, 9) else "0"))
        axes.set_xlabel("points of success, with the cue minus without it")
        axes.grid(axis="x", color=GRID)
        axes.grid(axis="y", visible=False)
    return svg[0]


def confusion(labels: Sequence[str], counts: Mapping[tuple[str, str], int]) -> str:
    """A matrix of (expected, found) labels: the count in each cell, its share of the row as the depth of its colour."""
    size = 1.2 + 0.42 * max(2, len(labels))
    with _figure("confusion", size + 1.9, size + 0.4) as (axes, svg):
        for y, truth in enumerate(labels):
            total = sum(counts.get((truth, said), 0) for said in labels)
            for x, said in enumerate(labels):
                n = counts.get((truth, said), 0)
                share = n / total if total else 0.0
                colour = LINES[0] if truth == said else LINES[4]
                depth = 0.12 + 0.78 * share if n else 0.0
                axes.add_patch(Rectangle((x - 0.47, y - 0.47), 0.94, 0.94, color=colour, alpha=depth, linewidth=0))
                text = f"{n:,}" if n else "·"
                axes.text(x, y, text, ha="center", va="center", fontsize=7.5, color="white" if depth > 0.5 else GREY)
        axes.set_xticks(range(len(labels)), labels, rotation=40, ha="right")
        axes.set_yticks(range(len(labels)), labels)
        axes.set_xlim(-0.5, max(len(labels), 1) - 0.5)
        axes.set_ylim(max(len(labels), 1) - 0.5, -0.5)
        axes.set_xlabel("primary label found at the faulty turn")
        axes.set_ylabel("label of the injected fault")
        axes.grid(visible=False)
    return svg[0]


@contextmanager
def _figure(name: str, width: float, height: float):
    """(axes, one-element list that holds the SVG text after the block)."""
    svg: list[str] = []
    with matplotlib.rc_context({"svg.hashsalt": name}, STYLE):
        figure = Figure((width, height), layout="constrained")
        axes = figure.add_subplot()
        axes.grid(axis="y", color=GRID)
        axes.tick_params(length=0)
        yield axes, svg
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        svg.append(_inline(out.getvalue(), name))


def _inline(text: str, name: str) -> str:
    """Only the <svg> element, its ids made unique within a page, with a title for screen readers."""
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'url\(#|xlink:href="#', lambda m: f"{m[0]}{name}-", text)
    return text.replace("<svg", f'<svg role="img" aria-label="{name}"', 1)


def _percent(axis) -> None:
    axis.set_major_formatter(ticker.PercentFormatter(1.0, decimals=0))
    axis.set_major_locator(ticker.MaxNLocator(5, steps=[1, 2, 5, 10]))


def _top(values) -> float:
    return min(1.0, max([0.05, *values]) * 1.12) + 0.005


def _short(text: str, most: int = 44) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
