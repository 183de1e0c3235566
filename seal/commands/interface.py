"""`seal interface show|diff|export`: the learning interface of a round, for people and for other frameworks."""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

from seal.commands.places import add_root
from seal.core.errors import ArtifactError
from seal.core.types import ToolDoc
from seal.interface.export import mcp_tools, openai_tools
from seal.interface.render import MODES
from seal.interface.state import InterfaceState, Item, load_interface
from seal.interface.wording import count_words
from seal.settings.params import load_params
from seal.workspace.lineage import Lineage, path_of

PLACES = {"docs": "tool docs", "feedback": "after an error", "hint": "guidance"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True)
    show = actions.add_parser("show", help="the cues of a round")
    show.add_argument("round")
    show.add_argument("--all", action="store_true", help="retired and rolled-back cues too")
    diff = actions.add_parser("diff", help="what changed between two rounds")
    diff.add_argument("a")
    diff.add_argument("b")
    export = actions.add_parser("export", help="evolved tool docs as JSON")
    export.add_argument("round")
    export.add_argument("--format", choices=("openai", "mcp"), default="openai")
    export.add_argument("--mode", choices=MODES, default="full", help="feedback_only, off: the bare docs")
    for action in (show, diff, export):
        add_root(action)


def run(args: argparse.Namespace) -> int:
    if args.action == "show":
        print(_shown(args.round, _load(args.root, args.round), args.all))
    elif args.action == "diff":
        print(_difference(args.a, _load(args.root, args.a), args.b, _load(args.root, args.b)))
    else:
        state = _load(args.root, args.round)
        export = openai_tools if args.format == "openai" else mcp_tools
        tools = export(_docs(args.root, args.round), state, args.mode)
        print(json.dumps(tools, indent=2, ensure_ascii=False))
    return 0


def _load(root: Path, round_id: str) -> InterfaceState:
    Lineage(load_params(root / "params.yaml")).entry(round_id)
    path = path_of(root, round_id, "interface.json")
    if not path.exists():
        remedy = "`seal run` makes it; `dvc pull` fetches what was run elsewhere"
        raise ArtifactError(f"interface of {round_id}", "not made yet", remedy)
    return load_interface(path)


def _shown(round_id: str, state: InterfaceState, everything: bool) -> str:
    items = state.items if everything else state.active
    lines = [_headline(round_id, state)]
    for place, title in PLACES.items():
        here = sorted((i for i in items if i.where == place), key=lambda i: (i.target, i.kind, i.text))
        lines += [f"\n{title}", *_table(here)] if here else []
    return "\n".join(lines)


def _headline(round_id: str, state: InterfaceState) -> str:
    tokens = sum(count_words(item.text) for item in state.active)
    return f"{round_id}: {len(state.active)} cues, {tokens} words, interface {state.hash}"


def _table(items: Iterable[Item]) -> list[str]:
    rows = [(item.target, item.text, _provenance(item)) for item in items]
    left, middle = (max((len(row[i]) for row in rows), default=0) for i in (0, 1))
    return [f"  {target:<{left}}  {text:<{middle}}  {why}".rstrip() for target, text, why in rows]


def _provenance(item: Item) -> str:
    parts = [item.kind, item.label, f"n={item.support}" if item.support else "", item.born_in]
    return f"[{' '.join(p for p in parts if p)}]" + ("" if item.status == "active" else f" {item.status}")


def _difference(a: str, before: InterfaceState, b: str, after: InterfaceState) -> str:
    from seal.report.rounds import diff

    added, removed, unchanged = diff(before, after)
    lines = [_headline(a, before), _headline(b, after)]
    lines += [f"+{row[1:]}" for row in _table(added)] + [f"-{row[1:]}" for row in _table(removed)]
    return "\n".join([*lines, f"  {unchanged} unchanged"])


def _docs(root: Path, round_id: str) -> tuple[ToolDoc, ...]:
    """Bare docs of every tool of the round's environment, by name."""
    from seal.env import env_of

    params = load_params(root / "params.yaml")
    env = env_of(params, Lineage(params).entry(round_id).env)
    docs = {}
    for task in {task.toolset: task for task in env.tasks()}.values():
        docs.update((doc.name, doc) for doc in env.docs(task, max(0, len(task.turns) - 1)))
    return tuple(docs[name] for name in sorted(docs))
