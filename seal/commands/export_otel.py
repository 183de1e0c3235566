"""`seal export otel`: stored rollouts as OpenTelemetry traces, label rates as metrics, over OTLP. See docs/otel.md."""

import argparse
import os
import time
from datetime import UTC, datetime

from seal.commands.places import add_root
from seal.core.errors import ParamError, RoundError

HELP = "stored rollouts as OpenTelemetry traces, label rates as metrics"
PHASES = ("collect", "train", "evaluate")
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"  # the variable of OpenTelemetry's own instrumentations


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rounds", nargs="*", metavar="round", help="default: all that have been played")
    parser.add_argument("--phase", choices=PHASES, help="of this phase only")
    parser.add_argument("--rollout", default="", metavar="ID", help="this one alone, without rates")
    parser.add_argument("--endpoint", default="", metavar="URL",
                        help="default: OTEL_EXPORTER_OTLP_ENDPOINT, else http://localhost:4318")  # fmt: skip
    parser.add_argument("--content", action="store_true", default=os.environ.get(CONTENT, "").lower() == "true",
                        help=f"texts, arguments, results and evidence too (default: ${CONTENT})")  # fmt: skip
    parser.add_argument("--at", metavar="TIME", help="when rollouts begin, as 2026-01-31T12:00:00Z (default: now)")
    parser.add_argument("--timeout", type=float, metavar="SECONDS", help="of a request with its retries (default: 10)")
    add_root(parser)


def run(args: argparse.Namespace) -> int:
    from seal.report.otel import Endpoint, send
    from seal.workspace.views import open_root

    if args.timeout is not None and not 0 < args.timeout < 3600:
        raise ParamError("--timeout", args.timeout, "seconds, more than 0 and less than an hour")
    endpoint, start = Endpoint(args.endpoint, args.timeout), _nanoseconds(args.at)
    con = open_root(args.root)
    chosen = _chosen(con, args.rounds, args.phase, args.rollout)
    sent = send(con, chosen, endpoint, start, args.content, args.rollout)
    print(f"sent {sent.rollouts:,} rollouts as {sent.spans:,} spans, and {sent.rates:,} label rates")
    return 0


def _chosen(con, rounds: list[str], phase: str | None, rollout: str) -> list[tuple[str, str]]:
    """(round, phase) of what is asked for, in the order of the tree."""
    from seal.workspace.views import not_played_error, rows

    played = rows(con, "SELECT DISTINCT round, phase, depth FROM trajectories WHERE ? IN ('', rollout_id)", [rollout])
    known = sorted({row["round"] for row in played})
    for name in rounds:
        if name not in known:
            raise not_played_error(name, known)
    fitting = [row for row in played if (not rounds or row["round"] in rounds) and phase in (None, row["phase"])]
    if not fitting:
        raise RoundError("rollouts", rollout or phase or "none", "nothing to send: seal run, or seal round list")
    fitting.sort(key=lambda row: (row["depth"] or 0, row["round"], PHASES.index(row["phase"])))
    return [(row["round"], row["phase"]) for row in fitting]


def _nanoseconds(when: str | None) -> int:
    if when is None:
        return time.time_ns()
    try:
        found = datetime.fromisoformat(when)
    except ValueError:
        raise ParamError("--at", when, "a time such as 2026-01-31T12:00:00Z") from None
    found = found if found.tzinfo else found.replace(tzinfo=UTC)
    if not 1970 <= found.year < 2500:  # nanoseconds in 64 bits
        raise ParamError("--at", when, "a year from 1970 to 2499")
    return int(found.timestamp() * 1_000_000) * 1000
