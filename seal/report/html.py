"""The report as one self-contained HTML page: inline SVG and style, no script, nothing fetched. All text is escaped.

No clock, host or path gets into it, so the same rounds give the same bytes.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from html import escape
from importlib.metadata import PackageNotFoundError, version
from itertools import starmap
from pathlib import Path
from typing import Any

from seal.core.errors import ArtifactError
from seal.core.labels import FAILURES
from seal.core.types import Task
from seal.interface.state import InterfaceState, Item
from seal.report.episodes import Episode, episode_html, examples
from seal.report.experiments import (
    LEGEND,
    TRANSFER_LEGEND,
    Results,
    curves,
    load_results,
    load_transfers,
    task_cells,
    transfer_cells,
    turn_cells,
)
from seal.report.rounds import Round, diff, lineages, load_rounds
from seal.report.stored import stored_copying, stored_episodes, stored_tasks, stored_uplifts, stored_validation
from seal.report.tables import HEAD, between, interval, label_movers, points, results_cells, score
from seal.store.files import atomic_file
from seal.workspace.views import MEND, missing_tables

PACKAGES = ("torch", "transformers", "trl", "peft", "pyarrow", "duckdb", "great-expectations", "bfcl-eval")
MOST_CUES = 20
STYLE = Path(__file__).with_name("style.css")  # no script, no font from elsewhere
PROOF = Path("results", "inject.csv")  # of `seal diagnose --inject`


def write_report(root: Path = Path(), out: Path | None = None) -> Path:
    """Write the page (default: data/report.html) and return its path. Raises ArtifactError when there are no rounds."""
    path = out or root / "data" / "report.html"
    with atomic_file(path) as partial:
        partial.write_text(page(root), encoding="utf-8")
    return path


def page(root: Path) -> str:
    """The HTML text. Raises ArtifactError for a table that is damaged, or lacks beside others."""
    rounds = load_rounds(root)
    for path in missing_tables(root / "data"):
        raise ArtifactError("missing table", path, MEND)
    tasks, copying = stored_tasks(root, rounds), stored_copying(root)
    main = max(lineages(rounds), key=lambda line: (len(line), line[-1].metrics.get("dev", {}).get("mean", 0.0)))
    parts = [
        _header(rounds, main),
        _section("Results", _table(*results_cells(rounds), wrap=(len(HEAD) - 1,)), _categories(rounds)),
        _section("Plots", _plots(rounds, main, tasks)),
        _section("Rounds", *(_round(r, rounds, copying.get(r.id, ""), r is main[-1]) for r in rounds)),
        _section("Episodes", _episodes(main, tasks)),
        _section("Experiments", *map(_experiment, load_results(root)), *starmap(_transfer, load_transfers(root))),
        _section("Can the labels be trusted?", _proof(root / PROOF)),
        _section("What ran", _provenance(root, rounds, tasks)),
    ]
    style = STYLE.read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>SEAL report</title>\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{style}</style></head>\n'
        f"<body><main>{''.join(parts)}</main></body></html>\n"
    )


def _section(title: str, *body: str) -> str:
    return f"<section><h2>{title}</h2>{''.join(body)}</section>\n" if any(body) else ""


def _header(rounds: Sequence[Round], main: Sequence[Round]) -> str:
    first, last = main[0], main[-1]
    gain = last.metrics.get("gain", {}).get("start")
    envs = ", ".join(sorted({str(r.metrics.get("env", "")) for r in rounds}))
    tiles = [
        (f"{points(first.metrics['strict'])}%", f"strict score at {first.id} {interval(first.metrics['strict'])}"),
        (f"{points(last.metrics['strict'])}%", f"strict score at {last.id} {interval(last.metrics['strict'])}"),
        (f"{last.metrics['total']['rollouts']:,}", f"training rollouts, {last.metrics['total']['tokens']:,} tokens"),
        (str(last.metrics["interface"]["active"]), f"cues in the interface after {last.id}"),
    ]
    if gain:
        tiles.insert(2, (f"{points(gain, '+')}", f"points gained, paired {interval(gain, '+')}"))
    tile = '<div class="tile"><b>{}</b><span class="small soft">{}</span></div>'
    cells = "".join(tile.format(*map(escape, texts)) for texts in tiles)
    line = " &rarr; ".join(escape(r.id) for r in main)
    more = f", {len(rounds) - len(main)} more in other branches" if len(rounds) > len(main) else ""
    return (
        f'<h1>Co-evolution of a policy and its interface</h1><div class="soft">{escape(envs)}: {line}{more}. Scores '
        "are of held-out test tasks with the interface off; intervals are 95%, clustered by scenario.</div>"
        f'<div class="tiles">{cells}</div>'
    )


def _categories(rounds: Sequence[Round]) -> str:
    names = sorted({name for r in rounds for name in r.metrics.get("by_category", {})})
    if len(names) < 2:
        return ""
    rows = [(r.id, *(score(r.metrics.get("by_category", {}).get(name)) for name in names)) for r in rounds]
    return f"<h3>Strict score by category</h3>{_table(('round', *names), rows)}"


def _plots(rounds: Sequence[Round], main: Sequence[Round], tasks: Mapping[str, Task]) -> str:
    from seal.report import plots

    def triple(estimate: Mapping[str, float] | None) -> plots.Interval | None:
        return (estimate["mean"], estimate["low"], estimate["high"]) if estimate and estimate.get("n", 1) else None

    measured = {
        r.id: plots.Point(r.id, r.metrics["total"]["rollouts"], strict, *map(triple, map(r.metrics.get, ("dev", "on"))))
        for r in rounds
        if (strict := triple(r.metrics["strict"]))
    }
    lines = sorted(lineages(list(rounds)), key=lambda line: line[-1] is not main[-1])
    curves = [[measured[r.id] for r in line if r.id in measured] for line in lines]
    labels = [(r.id, r.metrics.get("labels", {})) for r in rounds]
    failing = "Share of user turns that fail by themselves, by primary label; bare test rollouts."
    adds = plots.mismatch([(point.round_id, point.strict, point.on) for point in measured.values()])
    curve = plots.learning_curve([points for points in curves if points])
    figures = [
        ("Score over training", "Band: 95% interval over test scenarios.", curve),
        ("What fails", failing, plots.label_shift(labels)),
        ("What the interface still adds", "The same tasks with the interface off and on.", adds),
    ]
    if cues := stored_uplifts(main, tasks, MOST_CUES):
        note = "From training rollouts, each of which may leave one cue out at random; best first."
        figures.append(("Which cue helped", note, plots.cue_uplift(cues)))
    return f'<div class="plots">{"".join(_figure(*figure) for figure in figures)}</div>'


def _figure(title: str, note: str, svg: str) -> str:
    return f"<figure><figcaption><b>{escape(title)}</b>{escape(note)}</figcaption>{svg}</figure>"


def _round(r: Round, rounds: Sequence[Round], copying: str, is_open: bool) -> str:
    parent = next((other for other in rounds if other.id == r.parent), None)
    before = parent.interface if parent else InterfaceState()
    body = _labels(r.metrics, parent.metrics.get("labels", {}) if parent else None) + _interface(before, r)
    if spent := r.metrics.get("spent", {}):
        costs = (f"{name} {of['rollouts']:,} rollouts ({of['tokens']:,} tokens)" for name, of in spent.items())
        body += _note(f"Cost: {', '.join(costs)}.")
    if copying:
        body += _note(f"{copying}.")
    gain = r.metrics.get("gain", {}).get("parent")
    change = f"{points(gain, '+')} points {interval(gain, '+')}" if gain else "start"
    return _details(f'{escape(r.id)} <span class="soft">{escape(change)}</span>', body, is_open)


def _note(text: str) -> str:
    return f'<p class="small soft">{escape(text)}</p>'


def _details(title: str, body: str, is_open: bool) -> str:
    return f"<details{' open' if is_open else ''}><summary>{title}</summary>{body}</details>"


def _labels(metrics: Mapping[str, Any], before: Mapping[str, float] | None) -> str:
    now, intervals = metrics.get("labels", {}), metrics.get("label_intervals", {})
    labels = sorted(now.keys() | (before or {}).keys(), key=lambda label: (-now.get(label, 0.0), label))
    if not labels:
        return '<p class="soft">No user turn failed by itself.</p>'
    rows, shifts = [], dict(label_movers(now, before or {}, len(labels)))
    for label in labels:
        shift = shifts.get(label, 0.0) if before is not None else 0.0
        change = _Raw(f'<span class="{"bad" if shift > 0 else "good"}">{100 * shift:+.1f}</span>' if shift else "")
        ends = between(*intervals[label]) if label in intervals else ""
        rows.append((label, f"{100 * now.get(label, 0.0):.1f}%", ends, change))
    head = "label", "share", "95%", "change"
    return f"<h3>Failures per user turn (bare test rollouts)</h3>{_table(head, rows)}"


def _interface(before: InterfaceState, r: Round) -> str:
    added, removed, unchanged = diff(before, r.interface)
    if not (added or removed or unchanged):
        return '<p class="soft">The interface is bare.</p>'
    rows = [*(_cue("+", item) for item in added), *(_cue("-", item) for item in removed)]
    head = f"<h3>Interface: {len(added)} added, {len(removed)} removed, {unchanged} kept</h3>"
    if not rows:
        return head
    return head + _table(("", "where", "target", "cue", "answers", "support"), rows, (0, 1, 2, 3, 4))


def _cue(sign: str, item: Item) -> tuple[Any, ...]:
    mark = _Raw(f'<span class="{"good" if sign == "+" else "bad"}">{sign}</span>')
    return mark, item.where, item.target, _Raw(f"<code>{escape(item.text)}</code>"), item.label, str(item.support)


def _episodes(main: Sequence[Round], tasks: Mapping[str, Task]) -> str:
    found = examples(*(stored_episodes(r, tasks) for r in (main[0], main[-1]))) if len(main) > 1 else []
    if not found:
        return ""
    first, last = main[0].id, main[-1].id
    note = f"One task for each frequent failure of {first}, as {first} and as {last} played it, interface off."
    return f'<p class="soft">{escape(note)}</p>' + "".join(
        _example(main, *example, is_open=not i) for i, example in enumerate(found)
    )


def _example(main: Sequence[Round], label: str, before: Episode, after: Episode, is_open: bool) -> str:
    outcome = "solved" if after.judged.success else "still failing"
    tag = f'<span class="tag {"good" if after.judged.success else "bad"}">{outcome}</span>'
    columns = "".join(
        f"<div><h3>{escape(r.id)}</h3>{episode_html(episode)}</div>"
        for r, episode in ((main[0], before), (main[-1], after))
    )
    task = before.task
    title = f"{escape(label)} {tag} <span class='soft small'>{escape(task.task_id)}, {escape(task.category)}</span>"
    return _details(title, f'<div class="pair">{columns}</div>', is_open)


def _experiment(results: Results) -> str:
    from seal.report import plots

    key = "-".join(re.findall(r"\w+", results.name))
    pulled = {arm: {k: v for k, v in shares.items() if k in FAILURES} for arm, shares in results.pulled.items()}
    figures = [
        ("Score over training", "Test, interface off; whiskers: 95% over seeds and scenarios.",
         plots.arm_curves(f"curves-{key}", curves(results.summary))),
        ("What fails after the last round", "Share of bare test turns that fail by themselves, by primary label.",
         plots.label_shift(list(results.rates.items()), f"rates-{key}")),
        ("Which failures training pulls at", "Share of |advantage x weight| over tokens, by the turn's label; right "
         "turns pull the rest.", plots.label_shift(list(pulled.items()), f"pull-{key}")),
    ]  # fmt: skip
    drawn = "".join(_figure(*figure) for figure in figures)
    table = _table(*task_cells(results.summary)) + _table(*turn_cells(results.summary))
    return f'<h3>{escape(results.name)}</h3>{table}{_note(LEGEND)}<div class="plots">{drawn}</div>'


def _transfer(name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    return f"<h3>{escape(name)}</h3>{_table(*transfer_cells(rows))}{_note(TRANSFER_LEGEND)}"


def _proof(path: Path) -> str:
    """The confusion matrix of injected faults, where the proof was run."""
    if not path.exists():
        return ""
    from seal.diagnose.proof.score import APART, CONTROL, FAULT, PAIR, Score, read_rows
    from seal.report import plots

    rows = read_rows(path)
    result = Score(rows)
    played = sum(result.count(case) for case in (FAULT, APART, CONTROL))
    envs = ", ".join(sorted({row.env for row in rows}))
    note = (
        f"{played:,} gold trajectories of {envs} with a known fault each; {result.count(FAULT):,} flip a verdict, "
        f"shown here. Macro-F1 {result.macro_f1:.4f}, the right turn found in {result.turn_found:.2%}, right turns "
        f"blamed {result.blamed:.2%}; of two faults at once both are labelled in {result.both:.1%} of "
        f"{result.count(PAIR):,}."
    )
    svg = plots.confusion(result.labels, result.confusion)
    return f'<div class="plots">{_figure("Injected faults", note, svg)}</div>'


def _provenance(root: Path, rounds: Sequence[Round], tasks: Mapping[str, Task]) -> str:
    params = root / "params.yaml"
    digest = hashlib.sha256(params.read_bytes()).hexdigest()[:16] if params.exists() else ""
    splits = sorted({task.split for task in tasks.values()})
    counts = ", ".join(f"{sum(task.split == split for task in tasks.values())} {split}" for split in splits)
    rows = [
        ("parameters", f"params.yaml sha256 {digest}" if digest else "none"),
        ("versions", ", ".join(_versions(PACKAGES))),
        ("tasks", counts or "none stored"),
        ("evaluation rollouts", f"{sum(r.metrics.get('evaluate', {}).get('rollouts', 0) for r in rounds):,}"),
        ("policies", ", ".join(f"{r.id} {r.metrics.get('policy_hash', '?')}" for r in rounds)),
        ("interfaces", ", ".join(f"{r.id} {r.interface.hash}" for r in rounds)),
        ("data contracts", stored_validation(rounds) or "not run"),
    ]
    return _table(("what", "value"), rows, (0, 1), wrap=(1,))


def _versions(packages: Iterable[str]) -> list[str]:
    found = []
    for package in packages:
        with suppress(PackageNotFoundError):
            found.append(f"{package} {version(package)}")
    return found


class _Raw(str):
    """HTML that is escaped already."""


def _table(
    head: Sequence[str], rows: Sequence[Sequence[Any]], left: Sequence[int] = (0,), wrap: Sequence[int] = ()
) -> str:
    def cell(tag: str, i: int, value: Any) -> str:
        names = " ".join(name for name, there in (("l", i in left), ("wrap", i in wrap)) if there)
        text = value if isinstance(value, _Raw) else escape(str(value))
        return f'<{tag} class="{names}">{text}</{tag}>' if names else f"<{tag}>{text}</{tag}>"

    lines = ["".join(cell("th", i, value) for i, value in enumerate(head))]
    lines += ["".join(cell("td", i, value) for i, value in enumerate(row)) for row in rows]
    return f'<div class="card scroll"><table>{"".join(f"<tr>{line}</tr>" for line in lines)}</table></div>'
