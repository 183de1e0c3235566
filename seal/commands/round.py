"""`seal round new|branch|list`: the tree of rounds in params.yaml."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seal.commands.custom_env import changed_tools
from seal.commands.places import add_settings
from seal.core.errors import ParamError, RoundError
from seal.experiment.arms import ARMS, changes_of
from seal.settings.params import load_params
from seal.settings.rounds import Round
from seal.workspace.lineage import Lineage, find_root, read_metrics
from seal.workspace.lock import changed_since
from seal.workspace.params_file import add_round, as_typed, merged, next_id, parse_settings, resolve


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True)
    new = actions.add_parser("new", help="add a round with its parent's parameters (a start's: the defaults)")
    new.add_argument("id", nargs="?", help="default: the next free number")
    new.add_argument("--parent", help="default: the last round")
    branch = actions.add_parser("branch", help="add a second child of a round, with the parameters of its first child")
    branch.add_argument("id")
    branch.add_argument("--from", dest="parent", required=True, metavar="ROUND", help="the round to branch off")
    for action in (new, branch):
        action.add_argument("--arm", default="", help=f"an arm of experiments, over the defaults: {', '.join(ARMS)}")
        add_settings(action, "--set", "what differs, for example train.lr=1e-4")
    actions.add_parser("list", help="the tree with scores")


def run(args: argparse.Namespace) -> int:
    root = find_root()
    lineage = Lineage(load_params(root / "params.yaml"))
    if args.action == "list":
        print(tree(root, lineage))
        return 0
    parent = _last(lineage) if args.parent is None else args.parent
    lineage.entry(parent)
    siblings = lineage.children(parent) if args.action == "branch" else []
    like = lineage.round(siblings[0]) if siblings else None
    if not like and not args.arm:  # which is a change of the defaults
        like = lineage.params.rounds.get(parent)
    name = next_id(lineage.params, parent) if args.id is None else args.id
    with as_typed("--set", args.set, f"rounds.{name}"):
        change = parse_settings(args.set)
        if args.arm:
            change = merged(_of_arm(args.arm, lineage, parent, change, like, name), change)
        add_round(root / "params.yaml", name, resolve(lineage.params, parent, change, like, name))
    print(f"added {name} (parent {parent}); run it: seal run")
    return 0


def _of_arm(
    arm: str, lineage: Lineage, parent: str, change: Mapping[str, Any], like: Round | None, name: str
) -> Mapping[str, Any]:
    """What an arm of experiments changes in a child of `parent`: `change` and `like` decide the size of its groups."""
    if arm not in ARMS:
        raise ParamError("--arm", arm, f"known arms: {', '.join(ARMS)}")
    depth, kind = lineage.depth(parent), lineage.params.starts[lineage.start(parent)].policy["kind"]
    group_size = resolve(lineage.params, parent, change, like, name)["collect"]["group_size"]
    return changes_of(arm, group_size, depth + 1, kind)[depth]


def tree(root: Path, lineage: Lineage) -> str:
    """One line a round: indented by depth, strict score with interval, gain over its parent, cues in the interface."""
    lines, stale = [], changed_since(root, lineage, changed_tools(root, lineage))
    for name, depth in lineage.walk():
        label, found = "  " * depth + name, read_metrics(root, name)
        note = f"  (before {stale[name]} changed)" if found and name in stale else ""
        lines.append(f"{label:<16}{scores_line(found)}{note}")
    return "\n".join(lines) or "no rounds: add a start to params.yaml, then `seal round new`"


def scores_line(found: Mapping[str, Any] | None) -> str:
    """What `list` says of one round."""
    if found is None:
        return "not run"
    from seal.report.tables import between

    strict = found["strict"]
    parts = [f"strict {100 * strict['mean']:5.1f} {between(strict['low'], strict['high'])}"]
    if nothing := found.get("do_nothing"):
        parts.append(f"doing nothing {100 * nothing['mean']:.1f}")
    if gain := (found.get("gain") or {}).get("parent"):
        parts.append(f"gain {100 * gain['mean']:+.1f}")
    if interface := found.get("interface"):
        parts.append(f"cues {interface['active']}")
    return "  ".join(parts)


def _last(lineage: Lineage) -> str:
    known = [*lineage.params.starts, *lineage.params.rounds]
    if not known:
        raise RoundError("parent", "none", "add a start to params.yaml first")
    return known[-1]
