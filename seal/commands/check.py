"""`seal check`: verify and diagnose the played turns of one task, as JSON."""

import argparse

from seal.commands import json_io
from seal.commands.custom_env import env_named
from seal.core.errors import ParamError
from seal.core.types import CallError, Json, Parsed, Rollout, Step, Task
from seal.env import NAMES
from seal.env.base import Environment, Session

SHAPE = (
    'a list of turns, each a list of steps, each a list of call strings: [[["tool(parameter=value)", ...], ...], ...]'
)
READ = """
As many turns as the task has: a finished conversation. Fewer: it was cut off in the last turn given; with [], in the
first, before anything was done. A turn of no steps, [], hands back at once. A task of tau2, bfcl_memory and bfcl_web is
one turn, so [] is cut off and [[]] finished; a string without a call is said to the user who listens there. The answer
says in "given" how the turns were read; a turn that passed after an error has "recovered": true."""
EXAMPLE = """seal check --env bfcl --task multi_turn_base_0 <<< '[[["cd(folder=\\"document\\")"], ["pwd()"]]]'"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    json_io.describe_stdin(parser, SHAPE + READ, EXAMPLE)
    known = f"{', '.join(NAMES)}, custom:my.tools, tau2:solo; by name alone, as params.yaml has it"
    parser.add_argument("--env", required=True, metavar="ENV", help=known)
    parser.add_argument("--task", required=True, metavar="ID")


def run(args: argparse.Namespace) -> int:
    """Turns on standard input. Prints `turns`, a verdict and labels each; `given`, how they were read; for BFCL and
    tau2 the `official` verdict."""
    turns = turns_of(json_io.read_stdin(SHAPE))
    env = env_named(args.env)
    task = task_named(env, args.task)
    if len(turns) > len(task.turns):
        raise ParamError("turns", len(turns), f"{task.task_id} has {len(task.turns)} user turns")
    rollout = played(env, task, turns)
    official = env.official(task, rollout, len(turns))
    report = {} if official is None else {"official": official}
    given = {"turns": len(turns), "of": len(task.turns), "stop_reason": rollout.stop_reason}
    json_io.write(report | {"turns": judged(env, task, rollout), "given": given})
    return 0


def task_named(env: Environment, task_id: str) -> Task:
    """Raises ParamError for an unknown one."""
    tasks = env.tasks()
    found = next((task for task in tasks if task.task_id == task_id), None)
    if found is None:
        remedy = f"{env.name} as it is set here has {len(tasks)} tasks, {tasks[0].task_id} to {tasks[-1].task_id}"
        raise ParamError("--task", task_id or "none", remedy)
    return found


def turns_of(value: Json) -> list[list[list[str]]]:
    """Raises ParamError naming the first place that is of another shape."""
    if not isinstance(value, list):
        raise ParamError("standard input", type(value).__name__, f"give {SHAPE}")
    for number, turn in enumerate(value):
        if not isinstance(turn, list) or not all(isinstance(step, list) for step in turn):
            raise ParamError(f"turn {number}", repr(turn)[:80], f"give {SHAPE}")
        for call in (call for step in turn for call in step):
            if not isinstance(call, str):
                raise ParamError(f"call of turn {number}", repr(call)[:80], "give call strings: \"tool(name='value')\"")
    return value


def played(env: Environment, task: Task, turns: list[list[list[str]]]) -> Rollout:
    """The rollout these turns are. Fewer turns than the task's: the conversation was ended in the last one."""
    from seal.tools.parse import parse

    session, docs = env.open(task), env.docs(task, len(task.turns) - 1)
    steps = []
    for turn, texts in enumerate(turns):
        for number, said in enumerate(texts):
            parts = [_heard(parse(text, "pythonic", docs), text, session) for text in said]
            calls = [call for part in parts for call in part.calls]
            errors = [error for part in parts for error in part.errors or _none_said(part.calls)]
            results = tuple(session.call(call) for call in calls)
            steps.append(Step(turn, number, f"[{', '.join(said)}]", tuple(calls), tuple(errors), results))
        silence = session.message_call("")  # where a turn ends by handing back, here without a word
        if silence and not session.stop_reason:
            steps.append(Step(turn, len(texts), "", (silence,), (), (session.call(silence),)))
    stop = "finished" if len(turns) == len(task.turns) else "step_limit"
    return Rollout("check", task.task_id, 0, 0, "off", "", "", tuple(steps), stop)


def _heard(parsed: Parsed, text: str, session: Session) -> Parsed:
    """Words without a call are said to who listens: a user that answers, or whoever asked the question."""
    message = session.message_call(text) if text.strip() and not parsed.calls and not parsed.errors else None
    return Parsed((message,)) if message else parsed


def _none_said(calls: tuple) -> list[CallError]:
    return [] if calls else [CallError("syntax", "no call")]


def judged(env: Environment, task: Task, rollout: Rollout) -> list[Json]:
    """Per user turn: the verdict, the primary label, all labels, whether the turn's fault is its own; and whether it
    recovered, where it did."""
    from seal.diagnose import diagnose
    from seal.diagnose.diagnosis import RECOVERED
    from seal.verify.rollout import verify_rollout

    verdicts = verify_rollout(env, task, rollout)
    rows = diagnose(env, task, rollout, verdicts)
    report = []
    for verdict in verdicts:
        mine = [row for row in rows if row.turn == verdict.turn]
        primary = next(row for row in mine if row.primary)
        report.append(
            {
                "state_ok": verdict.state_ok,
                "response_ok": verdict.response_ok,
                "valid": verdict.valid,
                "primary": str(primary.label),
                "labels": list(dict.fromkeys(str(row.label) for row in mine)),
                "root": primary.root,
                **({"recovered": True} if any(row.detail == RECOVERED for row in mine) else {}),
            }
        )
    return report
