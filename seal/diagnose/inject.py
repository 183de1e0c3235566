"""Proof by fault injection: gold trajectories with known faults, diagnosed, and counted against what was expected.

What is expected follows from the kind of fault and from what execution did, never from the diagnosis' own alignment.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from seal.core.labels import DEFAULT_PRIORITY, FAILURES, Label
from seal.core.types import Call, CallError, Result, Rollout, Step, Task, Verdict
from seal.diagnose.diagnosis import diagnose
from seal.diagnose.evidence import facts_by_place
from seal.diagnose.schema import is_referent, said
from seal.env.base import Environment
from seal.policy import faults
from seal.policy.faults import Site, StepScript, TurnScript, gold_script, spliced
from seal.verify.turns import verify

ARGUMENT_FAULTS = (
    "missing_argument",
    "extra_argument",
    "wrong_type",
    "altered_literal",
    "wrong_code",
    "wrong_format",
    "repeated_failure",
    "ignored_error",
)
# Kind of fault -> the label that its nature asks for. What execution adds is in `expected_labels`.
NATURE: Mapping[str, Label] = {
    **dict.fromkeys(ARGUMENT_FAULTS, Label.ARGUMENT_MISMATCH),
    "unknown_tool": Label.INVALID_TOOL_CALL,
    "malformed": Label.INVALID_TOOL_CALL,
    "drop": Label.MISSING_TOOL_CALL,
    "empty": Label.MISSING_TOOL_CALL,
    "premature_end": Label.MISSING_TOOL_CALL,
    "skip_precondition": Label.CONSTRAINT_VIOLATION,
    "skip_permission": Label.CONSTRAINT_VIOLATION,
    "stale_referent": Label.STATE_MISMATCH,
    "wrong_tool": Label.MISSING_TOOL_CALL,
    "extra_call": Label.SPURIOUS_TOOL_CALL,
    "spurious": Label.SPURIOUS_TOOL_CALL,
    "early": Label.SPURIOUS_TOOL_CALL,
    "loop": Label.BUDGET_EXHAUSTED,
    "swap": Label.RESPONSE_MISMATCH,
}
CONTROLS = ("recovered", "explored")
KINDS = (*sorted(NATURE), *CONTROLS)


@dataclass(frozen=True, slots=True)
class Injected:
    """One gold trajectory with one fault, played. `expected`: the primary label first; empty for a control."""

    kind: str
    task: Task
    turn: int
    rollout: Rollout
    verdicts: tuple[Verdict, ...]
    expected: tuple[Label, ...]

    @property
    def flips(self) -> bool:
        """Whether any verdict, or the end of the episode, is another than gold's."""
        cut = self.rollout.stop_reason != "finished" and self.turn < len(self.task.turns) - 1
        return cut or not all(verdict.valid for verdict in self.verdicts)


@dataclass(frozen=True, slots=True)
class Case:
    """What the diagnosis said about one injected fault."""

    injected: Injected
    predicted: str  # primary label at the faulty turn
    labels: tuple[str, ...]  # all labels there
    found_turn: int  # first root failing turn, -1: none
    blamed: int  # right turns with a root failure as primary label
    right_turns: int


def injections(env: Environment, tasks: Sequence[Task], seed: int = 0) -> Iterator[Injected]:
    """Every kind of fault once a task, at a random turn that has a place for it."""
    for task in tasks:
        facts = facts_by_place(env.facts(task.toolset))
        for kind in KINDS:
            rng = random.Random(f"{seed}/{task.task_id}/{kind}")
            turns = list(range(len(task.turns)))
            rng.shuffle(turns)
            for turn in turns:
                script = _script(env, task, turn, kind, facts, rng)
                injected = _played(env, task, turn, kind, script) if script is not None else None
                if injected is not None:
                    yield injected
                    break


def judge(env: Environment, injected: Injected) -> Case:
    """Diagnose one injected trajectory."""
    rows = diagnose(env, injected.task, injected.rollout, injected.verdicts)
    primaries = {row.turn: row for row in rows if row.primary}
    roots = [turn for turn, row in sorted(primaries.items()) if row.root and row.label in FAILURES]
    right = [turn for turn in primaries if turn != injected.turn or not injected.expected]
    return Case(
        injected,
        predicted=str(primaries[injected.turn].label),
        labels=tuple(str(row.label) for row in rows if row.turn == injected.turn),
        found_turn=roots[0] if roots else -1,
        blamed=sum(turn in roots for turn in right),
        right_turns=len(right),
    )


@dataclass(frozen=True, slots=True)
class Pair:
    """Two faults in two turns of one rollout. `both`: each turn has the label expected of its fault, as a root."""

    kinds: tuple[str, str]
    turns: tuple[int, int]
    both: bool


def pairs(env: Environment, tasks: Sequence[Task], seed: int = 0) -> Iterator[Pair]:
    """Two faults at once, one pair a task: such that each turn fails by itself and both fail together."""
    kinds = sorted(set(NATURE) - {"loop", "swap"})
    for task in tasks:
        facts = facts_by_place(env.facts(task.toolset))
        rng = random.Random(f"{seed}/{task.task_id}/pair")
        options = [(turn, kind) for turn in range(len(task.turns)) for kind in kinds]
        rng.shuffle(options)
        found: dict[int, tuple[Injected, TurnScript]] = {}
        for turn, kind in options:
            script = _script(env, task, turn, kind, facts, rng) if turn not in found else None
            injected = _played(env, task, turn, kind, script) if script is not None else None
            if injected is not None and not injected.verdicts[turn].valid:
                found[turn] = (injected, script)
            if len(found) == 2:
                break
        if len(found) < 2:
            continue
        rollout = play(env, task, {turn: script for turn, (_, script) in found.items()})
        verdicts = verify(env, task, rollout.calls_by_turn(len(task.turns)))
        if any(verdicts[turn].valid for turn in found):
            continue  # one fault undid what the other did
        rows = diagnose(env, task, rollout, verdicts)
        labels = {turn: {str(row.label) for row in rows if row.turn == turn and row.root} for turn in found}
        both = all(str(injected.expected[0]) in labels[turn] for turn, (injected, _) in found.items())
        (first, (a, _)), (second, (b, _)) = sorted(found.items())
        yield Pair((a.kind, b.kind), (first, second), both)


def play(env: Environment, task: Task, scripts: Mapping[int, TurnScript]) -> Rollout:
    """The gold program with other scripts in some turns, executed; each turn ends with an explicit end of turn."""
    session = env.open(task)
    steps: list[Step] = []
    stop = "finished"
    for turn in range(len(task.turns)):
        script: tuple[StepScript, ...] = (*scripts.get(turn, gold_script(task, turn)), ())
        for i, said_ in enumerate(script[: env.max_steps_per_turn]):
            if isinstance(said_, str):
                steps.append(Step(turn, i, said_, errors=(CallError("syntax", "injected"),)))
            else:
                steps.append(Step(turn, i, "", said_, results=tuple(session.call(call) for call in said_)))
        if len(script) > env.max_steps_per_turn:
            stop = "step_limit"
            break
    return Rollout("injected", task.task_id, 0, 0, "off", "scripted:injected", "bare", tuple(steps), stop)


def _script(
    env: Environment, task: Task, turn: int, kind: str, facts: Mapping, rng: random.Random
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


def _call_fault(env: Environment, site: Site, kind: str, facts: Mapping, rng: random.Random) -> TurnScript | None:
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
        places = [n for n in sorted(call.arguments) if str(facts.get((call.name, n), {}).get("format", "-")) in str(call.arguments[n])]
        places = [n for n in places if "format" in facts.get((call.name, n), {})]
        return _replaced(call, rng, places, lambda n, v: v.removeprefix(facts[call.name, n]["format"]))
    if kind == "ignored_error":
        return faults.CALL_FAULTS["missing_argument"](site, rng) if site.index + 1 < len(site.task.turns[site.turn].gold) else None
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


def _stale(site: Site, facts: Mapping, rng: random.Random) -> TurnScript | None:
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
                old = rules.get("format", "") + old.removeprefix(facts.get((earlier.name, name), {}).get("format", ""))
            if old != value:
                options.append((name, old))
    if not options:
        return None
    name, old = rng.choice(options)
    return ((Call(call.name, {**call.arguments, name: old}),),)


def _user_gave(site: Site, name: str, facts: Mapping) -> bool:
    value = site.call.arguments[name]
    prefix = facts.get((site.call.name, name), {}).get("format", "")
    bare = value.removeprefix(prefix) if isinstance(value, str) and isinstance(prefix, str) else value
    return said(bare, "\n".join(turn.message for turn in site.task.turns[: site.turn + 1]))


def _codes(enum: object, right: object) -> list:
    codes = sorted(map(str, enum.values() if isinstance(enum, Mapping) else enum))
    return [code for code in codes if code != right] + ["none_of_them"]


def _replaced(call: Call, rng: random.Random, names: Sequence[str], change) -> TurnScript | None:
    if not names:
        return None
    name = rng.choice(names)
    return ((Call(call.name, {**call.arguments, name: change(name, call.arguments[name])}),),)


def _played(env: Environment, task: Task, turn: int, kind: str, script: TurnScript) -> Injected | None:
    """The trajectory with its verdicts and what to expect of it; None where the fault came out as another kind."""
    rollout = play(env, task, {turn: script})
    verdicts = tuple(verify(env, task, rollout.calls_by_turn(len(task.turns))))
    expected = () if kind in CONTROLS else expected_labels(env, task, turn, kind, rollout, verdicts)
    if expected is None or (kind in CONTROLS and not all(v.valid for v in verdicts)):
        return None
    return Injected(kind, task, turn, rollout, verdicts, expected)


def expected_labels(
    env: Environment, task: Task, turn: int, kind: str, rollout: Rollout, verdicts: Sequence[Verdict]
) -> tuple[Label, ...] | None:
    """Labels in order of priority: the fault's nature, a refusal that follows from it, an error left unrepaired."""
    labels = {NATURE[kind]}
    steps = [step for step in rollout.steps if step.turn == turn]
    ran = [(call, result) for step in steps for call, result in zip(step.calls, step.results, strict=True)]
    gold = list(task.turns[turn].gold)
    failed = [(call, result) for call, result in ran if result.error_kind]
    refused = [result for call, result in failed if call in gold and _refusal(result)]
    if kind in ("wrong_tool", "extra_call"):
        added = [call for call, _ in ran if call not in gold]
        there = {doc.name for doc in env.docs(task, turn)}
        if not added or any(call in added for call, _ in failed) or not {call.name for call in added} <= there:
            return None
        wrote = any(_writes(env, task, turn, ran, call) for call in added)
        if kind == "extra_call" and not wrote:
            return None
        labels |= {Label.SPURIOUS_TOOL_CALL} if wrote else set()
    if kind in ("drop", "premature_end", "skip_precondition", "skip_permission", "wrong_tool") and refused:
        labels.add(Label.CONSTRAINT_VIOLATION)
    if kind == "swap":
        verdict = verdicts[turn]
        labels = {Label.CONSTRAINT_VIOLATION if failed else Label.RESPONSE_MISMATCH}
        if not failed and not verdict.state_ok:
            labels = {Label.STATE_MISMATCH}
    if kind == "malformed" or (failed and gold and kind != "loop"):
        labels.add(Label.RECOVERY_FAILURE)
    return tuple(sorted(labels, key=DEFAULT_PRIORITY.index))


def _refusal(result: Result) -> bool:
    return result.error_kind in ("precondition", "permission")


def _writes(env: Environment, task: Task, turn: int, ran: Sequence[tuple[Call, Result]], call: Call) -> bool:
    """Whether a call of a turn changes the public state where it is made."""
    session = env.open(task)
    for before in [gold for earlier in task.turns[:turn] for gold in earlier.gold]:
        session.call(before)
    for other, _ in ran:
        old = str(session.state())
        session.call(other)
        if other == call:
            return str(session.state()) != old
    return False
