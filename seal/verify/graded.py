"""Turns without a gold program: a verdict with a confidence in (0, 1], from whoever the task names.

checker  a function of the user's: sure, unless it returns a confidence of its own
schema   only that calls were made and each tool's last call ran: says little, so little is trusted
judge    a model behind an endpoint (seal.verify.judge_model)

The confidence travels from the verdict to the turn's labels and scales its weight in training towards 1.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seal.core.errors import ParamError
from seal.core.types import Call, Json, Result, Task, Verdict
from seal.env.base import Environment
from seal.env.limit import TimedOut, time_limit
from seal.verify.judge_model import Unreadable, judge

SCHEMA_CONFIDENCE = 0.3
SECONDS = 60.0  # of computing, for a checker and the module it is in
Opinion = tuple[bool, float, str]  # valid, confidence, reason


@dataclass(frozen=True, slots=True)
class Played:
    """One user turn as it was played: what a checker gets. `before` and `state` are the public state around it.

    `earlier`: the turns before it. `results` aligns with `calls`.
    """

    message: str
    calls: tuple[Call, ...]
    results: tuple[Result, ...]
    before: Mapping[str, Json]
    state: Mapping[str, Json]
    earlier: tuple["Played", ...] = ()


def graded(
    env: Environment, task: Task, calls_by_turn: Sequence[Sequence[Call]], verdicts: Sequence[Verdict]
) -> list[Verdict]:
    """The verdicts, with those of turns that name a grader replaced by its own.

    A checker that fails is a verdict whose evidence holds `checker_error`: no fault of the policy's.
    """
    session, earlier, found = env.open(task), (), []
    before = _copied(session.state())
    for turn, name in enumerate(env.checks(task)):
        calls = tuple(calls_by_turn[turn])
        results = tuple(session.call(call) for call in calls)
        state = _copied(session.state())
        played = Played(task.turns[turn].message, calls, results, before, state, earlier)
        found.append(_verdict(env, name, turn, played) if name else verdicts[turn])
        before, earlier = state, (*earlier, played)
    return found


def _verdict(env: Any, name: str, turn: int, played: Played) -> Verdict:
    try:
        valid, confidence, reason = _opinion(env, name, played)
    except Faulty as error:
        return Verdict(turn, False, False, False, 1.0, {"graded": name, "checker_error": str(error)[:300]})
    return Verdict(turn, valid, valid, valid, confidence, {"graded": name, **({"reason": reason} if reason else {})})


def _opinion(env: Any, name: str, played: Played) -> Opinion:
    if name == "schema":
        return schema_only(played)
    if name == "judge":
        try:
            return judge(env.judge, played)
        except Unreadable as error:
            raise Faulty(str(error)) from error
    try:
        with time_limit(SECONDS):
            answer = env.checker(name)(played)
    except ParamError:
        raise
    except TimedOut:
        raise Faulty(f"ran for more than {SECONDS:g} seconds") from None
    except (Exception, SystemExit) as error:  # whatever the user's function raises
        raise Faulty(f"{type(error).__name__}: {error}") from error
    return opinion_of(answer)


class Faulty(Exception):
    """A grader that did not grade."""


def opinion_of(answer: Any) -> Opinion:
    """What a checker returned: True or False, or that with a confidence. Raises Faulty for anything else."""
    valid, confidence = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, 1.0)
    numeric = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if not isinstance(valid, bool) or not numeric or not 0 < confidence <= 1:
        raise Faulty(f"returned {answer!r}, not True, False, or one of them with a confidence in (0, 1]")
    return valid, float(confidence), ""


def schema_only(played: Played) -> Opinion:
    """Valid when there is a call and the last call of every tool ran: whether it was the right one is not known."""
    last = {call.name: result.error_kind for call, result in zip(played.calls, played.results, strict=True)}
    return bool(last) and not any(last.values()), SCHEMA_CONFIDENCE, ""


def _copied(state: Mapping[str, Json]) -> Mapping[str, Json]:
    """A copy that later calls, and the checker, cannot change."""
    return json.loads(json.dumps(state))
