"""BFCL's own verdict, from BFCL's own checker, which evaluates text: it is fed with nothing but what is written here.

The checker runs `eval` on call strings and keeps its worlds in module globals by model name and task id, and its
long-context data at module level. So every run gets literal calls of the task's tools re-serialised (in strings no
parenthesis, which its regular expression would take for a call), a name of its own, and modules of its own.
"""

import importlib
import keyword
import math
import re
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import localcontext
from typing import Any

from seal.core.types import Call, Json, Task
from seal.env.bfcl import bounds
from seal.env.bfcl.instances import signatures
from seal.env.bfcl.package import WORLDS, root
from seal.env.limit import TimedOut, time_limit
from seal.tools.literal import NotACall, call_of, tree_of

CHECKER = "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker"
EXECUTOR = "bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils"
FORCE_TERMINATED = "multi_turn:force_terminated"
NO_SUCH_TOOL = "seal_no_such_tool()"  # runs as an unknown name, an error result like the one it stands for
SECONDS = 60.0  # of computing, for one whole check
TIMED_OUT = "seal:timed_out"
_TURN = re.compile(r"for turn (\d+)")


def official_verdict(task: Task, turns: Sequence[Sequence[Sequence[str | Call]]]) -> dict[str, Json]:
    """`{"valid", "error_type", "turn"}` of turns of steps of calls, given as Calls or as call strings.

    `turn` is the first failing user turn, None where all pass or the whole check ran too long. Another number of
    turns than the task's is what the official runner calls force-terminated. A string that is no literal call is left
    out; a call of no tool of the task, or one that would run for ever, stays an error. Raises DependencyError when
    bfcl_eval is not installed.
    """
    root()
    if len(turns) != len(task.turns):
        return {"valid": False, "error_type": FORCE_TERMINATED, "turn": min(len(turns), len(task.turns))}
    try:
        return verdict_of(_run(*official_input(task, turns)))
    except TimedOut:
        return {"valid": False, "error_type": TIMED_OUT, "turn": None}


def official_input(task: Task, turns: Sequence[Sequence[Sequence[str | Call]]]) -> tuple[list, list, dict, str]:
    """The arguments of multi_turn_checker but the model's name: played and gold call strings, entry, category."""
    classes = list(task.initial_state["classes"])
    order = {tool: dict.fromkeys(names, "") for name in classes for tool, names in signatures(name).items()}
    played = [[text for step in turn if (text := [t for call in step for t in _texts(call, order)])] for turn in turns]
    gold = [[_text(call, order) for call in turn.gold] for turn in task.turns]
    entry = {"id": task.task_id, "initial_config": task.initial_state["config"], "involved_classes": classes}
    return played, gold, entry, task.category


def verdict_of(found: Mapping[str, Any]) -> dict[str, Json]:
    """`{"valid", "error_type", "turn"}` of what multi_turn_checker returned."""
    if found["valid"]:
        return {"valid": True, "error_type": None, "turn": None}
    return {"valid": False, "error_type": found["error_type"], "turn": _turn(found)}


def _run(played: list, gold: list, entry: dict[str, Json], category: str) -> dict[str, Any]:
    import mpmath

    name = f"seal_{uuid.uuid4().hex}"
    with _own_modules(name), localcontext(), mpmath.workprec(mpmath.mp.prec), time_limit(SECONDS):
        check = importlib.import_module(CHECKER).multi_turn_checker
        return check(played, gold, entry, category, name)


@contextmanager
def _own_modules(name: str) -> Iterator[None]:
    """Environment modules not seen before, and none of them left: no run changes what the next one starts from."""
    _forget_worlds()
    try:
        yield
    finally:
        held = vars(sys.modules[EXECUTOR]) if EXECUTOR in sys.modules else {}
        for key in [key for key in held if key.startswith(name)]:
            del held[key]
        _forget_worlds()


def _forget_worlds() -> None:
    for module in [module for module in sys.modules if module.startswith(f"{WORLDS}.")]:
        del sys.modules[module]


def _turn(found: Mapping[str, Any]) -> int:
    """The failing turn, told in the message or by the number of turns that were run."""
    if turn := _TURN.search(found.get("error_message", "")):
        return int(turn[1])
    return len(found["execution_result"]) - 1


def _texts(written: str | Call, order: dict[str, dict[str, str]]) -> list[str]:
    """The call strings of one entry: one; none when it is no literal call."""
    if isinstance(written, str):
        try:
            written = call_of(tree_of(written), order)
        except NotACall:
            return []
    return [_text(written, order)]


def _text(call: Call, order: dict[str, dict[str, str]]) -> str:
    if call.name not in order or bounds.refusal(call.name, call.arguments):
        return NO_SUCH_TOOL
    if not all(name.isidentifier() and not keyword.iskeyword(name) for name in call.arguments):
        return NO_SUCH_TOOL
    return f"{call.name}({', '.join(f'{name}={_literal(value)}' for name, value in call.arguments.items())})"


def _literal(value: Json) -> str:
    if isinstance(value, str):
        return repr(value).replace("(", "\\x28")
    if isinstance(value, float) and not math.isfinite(value):
        return {math.inf: "1e999", -math.inf: "-1e999"}.get(value, "-1e999+1e999")
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, tuple):
        return "(" + "".join(f"{_literal(item)}," for item in value) + ")"
    return repr(value)
