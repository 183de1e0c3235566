"""`seal show <rollout_id>`: one episode for a person."""

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from seal.commands.places import add_root
from seal.core.errors import ArtifactError
from seal.core.types import Call, Diagnosis, Result, Task, Verdict

if TYPE_CHECKING:
    from seal.report.stored_rollouts import Turn

MARK = "«{}»"  # around what the interface wrote
MOST = 1200  # characters of a text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rollout", help="its id, or the first digits of it")
    parser.add_argument("--full", action="store_true", help="long texts in full")
    add_root(parser)


def run(args: argparse.Namespace) -> int:
    from seal.workspace.views import open_root

    con = open_root(args.root)
    for line in _episode(con, _find(con, args.rollout), None if args.full else MOST):
        print(line)
    return 0


def _find(con: Any, prefix: str) -> dict[str, Any]:
    from seal.workspace.views import rows

    found = rows(
        con, "SELECT * FROM trajectories WHERE starts_with(rollout_id, ?) ORDER BY rollout_id LIMIT 6", [prefix]
    )
    exact = [row for row in found if row["rollout_id"] == prefix]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if not found:
        remedy = "find one: seal top, or seal sql 'SELECT rollout_id, task_id FROM failures LIMIT 9'"
        raise ArtifactError("rollout", prefix, f"no round has it; {remedy}")
    ids = ", ".join(row["rollout_id"] for row in found[:5]) + (", ..." if len(found) > 5 else "")
    raise ArtifactError("rollout", prefix, f"several begin so, write more of it: {ids}")


def _episode(con: Any, t: dict[str, Any], most: int | None) -> Iterator[str]:
    from seal.report.stored_rollouts import stored_rollouts

    (found,) = stored_rollouts(con, t["round"], t["phase"], t["rollout_id"])
    yield from _head(t)
    if not found.task:
        yield "           no table in data/tasks has it, so what the user says is not shown: `dvc checkout`"
    yield from _tools(con, t, found.task)
    for turn in found.turns():
        yield from _turn(turn, most)


def _head(t: dict[str, Any]) -> Iterator[str]:
    outcome = {None: "not verified", True: "success", False: "failure"}[t["success"]]
    progress = "" if t["progress"] is None else f", {100 * t['progress']:.0f}% of user turns valid"
    dropped = f" without cue {t['dropped_item']}" if t["dropped_item"] else ""
    step = f" step {t['train_step']}" if t["train_step"] else ""
    yield f"rollout    {t['rollout_id']}  {t['round']} {t['phase']}{step}, sample {t['sample']}"
    yield f"task       {t['task_id']}  {t['category'] or ''} {t['split'] or ''}".rstrip()
    yield f"policy     {t['policy_hash']}"
    yield f"interface  {t['interface_mode']}{dropped} ({t['interface_hash']})"
    yield f"outcome    {outcome}{progress}; {t['stop_reason']}, {t['n_steps']} steps, {t['n_tokens']} tokens sampled"


def _tools(con: Any, t: dict[str, Any], task: Task | None) -> Iterator[str]:
    """The tools of the task, each with the cues that its docs held."""
    from seal.workspace.views import rows

    cues = []
    if t["interface_mode"] in ("full", "docs_only"):
        sql = """
            SELECT DISTINCT target, text FROM interface_items
            WHERE interface_hash = ? AND status = 'active' AND place = 'docs' AND item <> ? ORDER BY ALL
        """
        cues = rows(con, sql, [t["interface_hash"], t["dropped_item"]])
    for tool in task.toolset if task else ():
        of_tool = [cue for cue in cues if cue["target"] == tool or cue["target"].startswith(f"{tool}.")]
        said = "  ".join(MARK.format(f"{cue['target'][len(tool) + 1 :]} {cue['text']}".strip()) for cue in of_tool)
        yield f"tool       {tool}  {said}".rstrip()


def _turn(turn: "Turn", most: int | None) -> Iterator[str]:
    user, verdict = turn.user, turn.verdict
    yield f"\n--- turn {turn.number} ---"
    if user:
        yield f"user     {_cut(user.message, most)}"
    for step in turn.steps:
        yield f"policy   {_cut(step.text, most) or '(nothing)'}"
        calls = [f"  call   {_call(call)}" for call in step.calls]
        results = [f"  {'ERROR ' if r.error_kind else 'result'} {_cut(_shown(r), most)}" for r in step.results]
        yield from (line for pair in zip(calls, results, strict=False) for line in pair)
        yield from calls[len(results) :]
        yield from (f"  ERROR  no call: {error.kind}: {_cut(error.message, most)}" for error in step.errors)
    if not turn.steps:
        yield "policy   (never reached)"
    if verdict:
        yield f"verdict  {_verdict(verdict)}"
    if user and verdict and not verdict.valid:
        yield f"expected {'; '.join(map(_call, user.gold)) or 'no call'}"
    yield from (f"{'label   ' if d.primary else '  also  '} {_label(d)}" for d in turn.diagnoses)


def _shown(result: Result) -> str:
    if result.shown == result.raw:
        return result.raw
    if result.shown.startswith(result.raw):
        return result.raw + MARK.format(result.shown[len(result.raw) :])
    return f"{MARK.format(result.shown)}  (raw: {result.raw})"


def _call(call: Call) -> str:
    arguments = ", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in call.arguments.items())
    return f"{call.name}({arguments})"


def _verdict(verdict: Verdict) -> str:
    parts = (("state", verdict.state_ok), ("response", verdict.response_ok))
    said = ", ".join(f"{name} {'ok' if ok else 'differs'}" for name, ok in parts)
    evidence = f"  {json.dumps(dict(verdict.evidence), ensure_ascii=False)}" if verdict.evidence else ""
    return f"{'valid' if verdict.valid else 'INVALID'} ({said}){evidence}"


def _label(d: Diagnosis) -> str:
    place = ".".join(filter(None, (d.tool, d.parameter)))
    words = [d.label, d.detail, place, f"step {d.step}" if d.step >= 0 else "", "" if d.root else "(a consequence)"]
    sure = "" if d.confidence == 1 else f"{100 * d.confidence:.0f}% sure"
    evidence = json.dumps(dict(d.evidence), ensure_ascii=False) if d.evidence else ""
    return "  ".join(filter(None, (*words, sure, evidence)))


def _cut(text: str, most: int | None) -> str:
    if most is None or len(text) <= most:
        return text
    return f"{text[:most]}… ({len(text) - most:,} more characters: --full)"
