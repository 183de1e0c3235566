"""Demonstrations: the gold program of training tasks as token sequences, through any codec."""

from collections.abc import Sequence
from typing import NamedTuple

from seal.core.errors import ParamError
from seal.core.types import Task
from seal.env.base import Environment, has_gold
from seal.interface.state import InterfaceState
from seal.interface.view import View
from seal.policy.base import Codec
from seal.tools.parse import format_calls


class Demonstration(NamedTuple):
    """`mask` is 1 on what the policy is to say; both have one length."""

    ids: list[int]
    mask: list[int]


def demonstrations(env: Environment, tasks: Sequence[Task], codec: Codec, max_tokens: int = 0) -> list[Demonstration]:
    """Play every task by its gold program, one step a call, then the end of the turn, shown as a rollout would show it.

    A demonstration longer than `max_tokens` (0: no limit) ends with the last action that fits; one without any action
    is left out, and so is a task that gold calls do not serve. Raises ParamError for a task that is not a training
    task: demonstrations of others would leak what is evaluated.
    """
    made = []
    for task in tasks:
        if task.split != "train":
            raise ParamError("demonstration task", f"{task.task_id} ({task.split})", "only training tasks may be shown")
        if has_gold(env, task):
            made.append(_cut(_play(env, task, codec), max_tokens))
    return [demonstration for demonstration in made if any(demonstration.mask)]


def _play(env: Environment, task: Task, codec: Codec) -> Demonstration:
    view = View(env, task, InterfaceState())
    session, demonstration = env.open(task), Demonstration([], [])

    def add(segment: list[int], trained: bool) -> None:
        demonstration.ids.extend(segment)
        demonstration.mask.extend([int(trained)] * len(segment))

    add(codec.prompt(view.docs(0), view.hints()), False)
    for number, turn in enumerate(task.turns):
        add(codec.user(turn.message, view.revealed(number)), False)
        for call in turn.gold:
            add(codec.encode_action(format_calls((call,), codec.format)), True)
            add(codec.results([view.shown(call, session.call(call), number)]), False)
        add(codec.encode_action(format_calls((), codec.format)), True)
    return demonstration


def _cut(demonstration: Demonstration, max_tokens: int) -> Demonstration:
    """Cut behind the last whole action within `max_tokens`."""
    ids, mask = demonstration
    if not max_tokens or len(ids) <= max_tokens:
        return demonstration
    ends = [i + 1 for i in range(max_tokens) if mask[i] and (i + 1 == len(ids) or not mask[i + 1])]
    end = ends[-1] if ends else 0
    return Demonstration(ids[:end], mask[:end])
