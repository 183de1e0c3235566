"""`seal top`: the failures most worth fixing now, by label, tool, parameter and detail."""

import argparse
from typing import Any

from seal.commands.places import add_root
from seal.core.errors import ParamError

PHASES = ("evaluate", "collect", "train")
HEAD = ("#", "label", "tool", "parameter", "detail", "turns", "fallout", "share", "change", "example")
# Bare rollouts alone: what the policy fails at by itself, and the later turns that failed only because of it (fallout).
# Worth most is what is behind most failing turns. The example is the shortest episode.
QUERY = """
WITH bare AS (
  SELECT round, phase, rollout_id, n_steps FROM trajectories
  WHERE round IN ($round, $parent) AND phase = $phase AND interface_mode = 'off'
), turns AS (
  SELECT round, count(DISTINCT (rollout_id, turn)) AS turns FROM bare JOIN diagnoses USING (round, phase, rollout_id)
  GROUP BY round
), counts AS (
  SELECT round, label, tool, parameter, detail, count(*) AS n, sum(consequences)::BIGINT AS fallout,
    arg_min(rollout_id, (n_steps, rollout_id)) AS example
  FROM bare JOIN failures USING (round, phase, rollout_id)
  JOIN (SELECT round, phase, rollout_id, root_turn AS turn, consequences FROM cascades)
    USING (round, phase, rollout_id, turn)
  GROUP BY ALL
)
SELECT now.label, now.tool, now.parameter, now.detail, now.n, now.fallout, now.n / t.turns AS share,
  now.n / t.turns - coalesce(before.n, 0) / before_turns.turns AS change, now.example
FROM counts now JOIN turns t USING (round)
LEFT JOIN turns before_turns ON before_turns.round = $parent
LEFT JOIN counts before ON before.round = $parent
  AND (before.label, before.tool, before.parameter, before.detail) = (now.label, now.tool, now.parameter, now.detail)
WHERE now.round = $round
ORDER BY now.n + now.fallout DESC, now.n DESC, change DESC NULLS LAST, now.label, now.tool, now.parameter, now.detail
LIMIT $limit
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("round", nargs="?", help="default: the last round that has been played")
    parser.add_argument("--phase", choices=PHASES, help="which rollouts (default: the first the round has)")
    parser.add_argument("-n", type=int, default=10, help="how many (default: 10)")
    add_root(parser)


def run(args: argparse.Namespace) -> int:
    from seal.report.tables import text_table
    from seal.workspace.views import not_played_error, open_root, rows

    if args.n < 1:
        raise ParamError("-n", args.n, "at least 1")
    con = open_root(args.root)
    played = rows(con, "SELECT DISTINCT round, parent, depth, phase FROM trajectories WHERE interface_mode = 'off'")
    order = {row["round"]: i for i, row in enumerate(rows(con, "SELECT round FROM rounds"))}
    played.sort(key=lambda row: (order.get(row["round"], -1), row["round"], -PHASES.index(row["phase"])))
    fitting = [row for row in played if args.round in (None, row["round"]) and args.phase in (None, row["phase"])]
    if not fitting:
        raise not_played_error(args.round or args.phase or "", (row["round"] for row in played))
    here = fitting[-1]
    values = {"round": here["round"], "parent": here["parent"] or "", "phase": here["phase"], "limit": args.n}
    found = rows(con, QUERY, values)
    against = f", change against {here['parent']}" if here["parent"] else ""
    print(f"{here['round']}, {here['phase']}, interface off: root failures by user turn, fallout: turns that failed")
    print(f"only because of them{against}\n")
    if not found:
        print("no user turn failed by itself")
        return 0
    print(text_table(HEAD, [_cells(i, row) for i, row in enumerate(found, 1)], (1, 2, 3, 4, 9)))
    print(f"\nlook at one: seal show {found[0]['example']}")
    return 0


def _cells(i: int, row: dict[str, Any]) -> tuple[str, ...]:
    change = "-" if row["change"] is None else f"{100 * row['change']:+.1f}"
    place = (row[name] or "-" for name in ("tool", "parameter", "detail"))
    counts = str(row["n"]), str(row["fallout"]), f"{100 * row['share']:.1f}%"
    return (str(i), row["label"], *place, *counts, change, row["example"])
