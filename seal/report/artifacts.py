"""What a finished round has to say, as Markdown for Prefect's artifacts."""

from pathlib import Path

from seal.interface.state import load_interface
from seal.report.rounds import diff
from seal.report.tables import label_movers
from seal.store.files import read_json
from seal.workspace.lineage import path_of


def label_shift(root: Path, before: str, after: str, most: int = 12) -> str:
    """Share of bare evaluation turns that fail so, before and after; the labels that moved most."""
    old, new = (read_json(path_of(root, name, "metrics.json"))["labels"] for name in (before, after))
    rows = [
        f"| {label} | {100 * old.get(label, 0.0):.1f} | {100 * new.get(label, 0.0):.1f} | {100 * change:+.1f} |"
        for label, change in label_movers(new, old, most)
    ]
    head = f"| label | {before} % | {after} % | change |\n|---|---|---|---|\n"
    return head + "\n".join(rows) + "\n" if rows else "No label moved by half a point.\n"


def interface_diff(root: Path, before: str, after: str) -> str:
    """Cues that came and went."""
    old, new = (load_interface(path_of(root, name, "interface.json")) for name in (before, after))
    added, removed, kept = diff(old, new)
    lines = [f"| + | {item.kind} | `{item.target}` | {item.text} | {item.label} |" for item in added]
    lines += [f"| - | {item.kind} | `{item.target}` | {item.text} | {item.label} |" for item in removed]
    return f"{kept} cues stay.\n\n| | kind | target | text | label |\n|---|---|---|---|---|\n" + "\n".join(lines) + "\n"
