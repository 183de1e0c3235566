"""BFCL trajectories made from the gold programs: as they are, and changed in every way a policy goes wrong.

A trajectory is turns of steps of calls. `trajectory(env, task, kind, seed)` is a function of its arguments alone.
"""

import json
import random
from collections.abc import Callable, Mapping, Sequence

from seal.core.types import Call, Json, Task
from seal.env.base import Environment
from seal.env.bfcl.instances import signatures

Turns = list[list[list[Call]]]
Change = Callable[[random.Random, Environment, Task, Turns], Turns | None]
LOOP = 21  # steps that the official loop allows in a turn

JUNK = (
    Call("no_such_tool", {}),
    Call("print", {"x": 1}),
    Call("exit", {}),
    Call("ls", {"not_a_parameter": 1}),
    Call("ls", {"not an identifier": 1}),
    Call("_load_scenario", {"scenario": {}}),
    Call("cd", {"folder": ".."}),
    Call("power", {"base": 9, "exponent": 387420489}),
    Call("post_tweet", {"content": "sort (x) \"a\" 'b' \\n é"}),
    Call("echo", {"content": "sort(x); rm(y)"}),
    Call("mv", {"source": "document", "destination": "document"}),
    Call("cp", {"source": "document", "destination": "document"}),
    Call("lockDoors", {"unlock": True, "door": ["driver"]}),
    Call("logarithm", {"value": 5, "base": 2, "precision": 7}),
    Call("square_root", {"number": 5, "precision": 70}),
    Call("mean", {"numbers": [float("inf"), 1]}),
    Call("get_stock_info", {"symbol": ["AAPL"]}),
    Call("create_ticket", {"title": {"a": 1}, "description": None, "priority": True}),
)


def trajectory(env: Environment, task: Task, kind: str, seed: int) -> Turns | None:
    """One trajectory of a kind; None where the kind cannot be made of this task."""
    rng = random.Random(f"{seed} {kind} {task.task_id}")
    turns = CHANGES[kind](rng, env, task, [[list(turn.gold)] if turn.gold else [] for turn in task.turns])
    return turns if turns is None else [[step for step in steps if step] for steps in turns]


def flat(turns: Turns) -> list[list[Call]]:
    """The calls of every turn, steps flattened."""
    return [[call for step in steps for call in step] for steps in turns]


def _gold(rng, env, task, turns):
    return turns


def _one_call_a_step(rng, env, task, turns):
    return [[[call] for step in steps for call in step] for steps in turns]


def _truncated(rng, env, task, turns):
    """From some call on nothing is said any more."""
    at = _turn(rng, turns)
    calls = turns[at][0]
    return [*turns[:at], [calls[: rng.randrange(len(calls))]], *([] for _ in turns[at + 1 :])]


def _call_dropped(rng, env, task, turns):
    calls = turns[_turn(rng, turns)][0]
    calls.pop(rng.randrange(len(calls)))
    return turns


def _turn_silent(rng, env, task, turns):
    turns[_turn(rng, turns)] = []
    return turns


def _reordered(rng, env, task, turns):
    """The calls of one turn in another order in which none of them fails."""
    places = [at for at, steps in enumerate(turns) if steps and len(steps[0]) > 1]
    rng.shuffle(places)
    for at in places:
        for _ in range(6):
            calls = rng.sample(turns[at][0], len(turns[at][0]))
            changed = [*turns[:at], [calls], *turns[at + 1 :]]
            if calls != turns[at][0] and not _fails(env, task, changed):
                return changed
    return None


def _disordered(rng, env, task, turns):
    places = [at for at, steps in enumerate(turns) if steps and len(steps[0]) > 1]
    if not places:
        return None
    rng.shuffle(turns[rng.choice(places)][0])
    return turns


def _turns_exchanged(rng, env, task, turns):
    if len(turns) < 2:
        return None
    one, other = rng.sample(range(len(turns)), 2)
    turns[one], turns[other] = turns[other], turns[one]
    return turns


def _argument_changed(rng, env, task, turns):
    return _altered(rng, turns, lambda call, name: {**call.arguments, name: other_value(rng, call.arguments[name])})


def _argument_missing(rng, env, task, turns):
    return _altered(rng, turns, lambda call, name: {k: v for k, v in call.arguments.items() if k != name})


def _argument_added(rng, env, task, turns):
    added = {rng.choice(("verbose", "class", "x y", "path", "self")): rng.choice((True, 1, "a", None))}
    return _altered(rng, turns, lambda call, name: {**call.arguments, **added})


def _wrong_tool(rng, env, task, turns):
    """A call of another tool of the task, with the same values as far as it takes them."""
    calls = turns[_turn(rng, turns)][0]
    at = rng.randrange(len(calls))
    tool = rng.choice(sorted(set(task.toolset) - {calls[at].name}))
    order = next(found[tool] for name in task.initial_state["classes"] if tool in (found := signatures(name)))
    values = list(calls[at].arguments.values()) + ["a", 1, "b", 2.5]
    calls[at] = Call(tool, dict(zip(order, values, strict=False)))
    return turns


def _junk(rng, env, task, turns):
    """Calls that no gold program has, before, between or after the right ones."""
    for _ in range(rng.randint(1, 4)):
        steps = turns[rng.randrange(len(turns))]
        calls = steps[0] if steps else []
        calls.insert(rng.randint(0, len(calls)), rng.choice((*JUNK, _any_call(rng, env))))
        steps[:] = [calls]
    return turns


def _early(rng, env, task, turns):
    """A turn's calls one turn before; then silence, something else, or the same again."""
    places = [at for at in range(1, len(turns)) if turns[at]]
    if not places:
        return None
    at = rng.choice(places)
    then = rng.choice(([], [[rng.choice(JUNK)]], turns[at]))
    turns[at - 1], turns[at] = turns[at - 1] + turns[at], then
    return turns


def _loop(rng, env, task, turns):
    """One call again and again, up to the limit of a turn."""
    at = _turn(rng, turns)
    calls = turns[at][0]
    again = rng.choice(calls)
    turns[at] = [calls, *([again] for _ in range(rng.randint(2, LOOP - 1)))]
    return turns


def _turn_twice(rng, env, task, turns):
    at = _turn(rng, turns)
    turns[at] = turns[at] * 2
    return turns


def _foreign(rng, env, task, turns):
    """The gold calls of another task beside the own ones."""
    other = rng.choice(env.tasks())
    at = rng.randrange(len(turns))
    turns[at] = [*turns[at], list(other.turns[0].gold)]
    return turns


def _several(rng, env, task, turns):
    """Three of the other changes, one after the other."""
    for name in rng.sample(sorted(CHANGES.keys() - {"several", "reordered", "gold", "shared_default"}), 3):
        if any(turns):
            single = [[[call for step in steps for call in step]] if steps else [] for steps in turns]
            turns = CHANGES[name](rng, env, task, single) or turns
            turns = [[step for step in steps if step] for steps in turns]
    return turns


def _shared_default(rng, env, task, turns):
    """Someone mentioned in a tweet whose list of mentions is the tool's default, which all official instances share."""
    places = [
        (at, i)
        for at, steps in enumerate(turns)
        for i, call in enumerate(steps[0] if steps else ())
        if call.name == "post_tweet" and "mentions" not in call.arguments
    ]
    if not places:
        return None
    at, i = rng.choice(places)
    session = env.open(task)
    before = [call for steps in turns[:at] for step in steps for call in step]
    told = json.loads([session.call(call).raw for call in (*before, *turns[at][0][: i + 1])][-1])
    if "id" not in told:
        return None
    turns[at][0].append(Call("mention", {"tweet_id": told["id"], "mentioned_usernames": ["@stranger"]}))
    return turns


CHANGES: Mapping[str, Change] = {
    "gold": _gold,
    "one_call_a_step": _one_call_a_step,
    "truncated": _truncated,
    "call_dropped": _call_dropped,
    "turn_silent": _turn_silent,
    "reordered": _reordered,
    "disordered": _disordered,
    "turns_exchanged": _turns_exchanged,
    "argument_changed": _argument_changed,
    "argument_missing": _argument_missing,
    "argument_added": _argument_added,
    "wrong_tool": _wrong_tool,
    "junk": _junk,
    "early": _early,
    "loop": _loop,
    "turn_twice": _turn_twice,
    "foreign": _foreign,
    "several": _several,
    "shared_default": _shared_default,
}


def other_value(rng: random.Random, value: Json) -> Json:
    """A near miss: another value, or another type."""
    if isinstance(value, bool):
        return rng.choice((not value, str(value), int(value), None))
    if isinstance(value, int | float):
        return rng.choice((value + 1, -value, str(value), float(value), int(value), None, [value]))
    if isinstance(value, str):
        return rng.choice((value + "x", value[:-1], value.upper(), value + " ", None, [value], 7, {value: 1}))
    if isinstance(value, list):
        return rng.choice((value[::-1], tuple(value), value[:1], value + value, str(value), [], None))
    return rng.choice((None, "{}", 0))


def _altered(rng: random.Random, turns: Turns, arguments_of: Callable[[Call, str], dict[str, Json]]) -> Turns | None:
    places = [(steps[0], i) for steps in turns if steps for i, call in enumerate(steps[0]) if call.arguments]
    if not places:
        return None
    calls, at = rng.choice(places)
    calls[at] = Call(calls[at].name, arguments_of(calls[at], rng.choice(sorted(calls[at].arguments))))
    return turns


def _any_call(rng: random.Random, env: Environment) -> Call:
    return rng.choice([call for turn in rng.choice(env.tasks()).turns for call in turn.gold])


def _turn(rng: random.Random, turns: Turns) -> int:
    """A turn with calls."""
    return rng.choice([at for at, steps in enumerate(turns) if steps])


def _fails(env: Environment, task: Task, turns: Sequence[Sequence[Sequence[Call]]]) -> bool:
    session = env.open(task)
    return any(session.call(call).error_kind for steps in turns for step in steps for call in step)
