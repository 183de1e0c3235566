"""Where in a gold program a fault of a kind can be put, and what the turn then says.

Only places where the kind of fault is clear are taken: a literal is altered only where the user gave it, a referent is
exchanged only for one an earlier turn was about.
"""

import random
from collections.abc import Callable, Mapping, Sequence

from seal.core.types import Call, Json, Task
from seal.diagnose.schema import is_referent, said
from seal.env.base import Environment
from seal.policy import faults
from seal.policy.faults import Site, TurnScript, spliced

Facts = Mapping[tuple[str, str], Mapping[str, Json]]  # (tool, parameter) -> {kind: value}


def fault_script(
    env: Environment, task: Task, turn: int, kind: str, facts: Facts, rng: random.Random
) -> TurnScript | None:
    if kind in faults.TURN_FAULTS:
        return faults.TURN_FAULTS[kind](task, turn, rng)
    sites = [Site(task, turn, i) for i in range(len(task.turns[turn].gold))]
    rng.shuffle(sites)
    for site in sites:
        steps = _call_fault(env, site, kind, facts, rng)
        if steps is not None:
            return spliced(task, turn, {site.index: steps})
    return None


def _call_fault(env: Environment, site: Site, kind: str, facts: Facts, rng: random.Random) -> TurnScript | None:
    """Faults that need the environment's docs or facts; the others, where what to expect of them is clear."""
    call = site.call
    if kind in ("skip_precondition", "skip_permission"):
        rule = "needs" if kind == "skip_precondition" else "role"
        later = site.task.turns[site.turn].gold[site.index + 1 :]
        needed = any(call.name in facts.get((other.name, ""), {}).get(rule, ()) for other in later)
        return () if needed else None
    if kind == "wrong_code":
        places = [n for n in sorted(call.arguments) if "enum" in facts.get((call.name, n), {})]
        return _replaced(call, rng, places, lambda n, v: rng.choice(_codes(facts[call.name, n]["enum"], v)))
    if kind == "wrong_format":
        places = [n for n in sorted(call.arguments) if _prefix(facts, call.name, n)]
        return _replaced(call, rng, places, lambda n, v: v.removeprefix(_prefix(facts, call.name, n)))
    if kind == "ignored_error":
        more = site.index + 1 < len(site.task.turns[site.turn].gold)
        return faults.CALL_FAULTS["missing_argument"](site, rng) if more else None
    if kind == "explored":
        past = [other for turn in site.task.turns[: site.turn] for other in turn.gold]
        return ((rng.choice([*past, call]),), (call,))
    if kind == "missing_argument":
        doc = next((doc for doc in env.docs(site.task, site.turn) if doc.name == call.name), None)
        required = [p.name for p in doc.params if p.required and p.name in call.arguments] if doc else []
        return ((faults.without(call, rng.choice(required)),),) if required else None
    if kind == "stale_referent":
        return _stale(site, facts, rng)
    steps = faults.CALL_FAULTS[kind](site, rng)
    if steps is None or kind != "altered_literal":
        return steps
    name = next(n for n in call.arguments if steps[0][0].arguments[n] != call.arguments[n])
    return steps if _user_gave(site, name, facts) and "enum" not in facts.get((call.name, name), {}) else None


def _stale(site: Site, facts: Facts, rng: random.Random) -> TurnScript | None:
    """The id or name of an earlier turn, in the form this tool asks for."""
    call = site.call
    options = []
    for earlier in [other for turn in site.task.turns[: site.turn] for other in turn.gold]:
        for name, value in sorted(call.arguments.items()):
            old, rules = earlier.arguments.get(name), facts.get((call.name, name), {})
            names_a_thing = is_referent(value) and is_referent(old) and (isinstance(value, str) or "id" in name)
            if not names_a_thing or type(old) is not type(value) or "enum" in rules:
                continue
            if isinstance(old, str):
                old = _prefix(facts, call.name, name) + old.removeprefix(_prefix(facts, earlier.name, name))
            if old != value:
                options.append((name, old))
    if not options:
        return None
    name, old = rng.choice(options)
    return ((Call(call.name, {**call.arguments, name: old}),),)


def _user_gave(site: Site, name: str, facts: Facts) -> bool:
    value = site.call.arguments[name]
    bare = value.removeprefix(_prefix(facts, site.call.name, name)) if isinstance(value, str) else value
    return said(bare, "\n".join(turn.message for turn in site.task.turns[: site.turn + 1]))


def _prefix(facts: Facts, tool: str, parameter: str) -> str:
    prefix = facts.get((tool, parameter), {}).get("format", "")
    return prefix if isinstance(prefix, str) else ""


def _codes(enum: object, right: object) -> list:
    codes = sorted(map(str, enum.values() if isinstance(enum, Mapping) else enum))
    return [code for code in codes if code != right] + ["none_of_them"]


def _replaced(
    call: Call, rng: random.Random, names: Sequence[str], change: Callable[[str, Json], Json]
) -> TurnScript | None:
    if not names:
        return None
    name = rng.choice(names)
    return ((Call(call.name, {**call.arguments, name: change(name, call.arguments[name])}),),)
