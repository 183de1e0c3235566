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
from seal.diagnose.places import fault_script
from seal.env.base import Environment
from seal.policy.faults import StepScript, TurnScript, gold_script
from seal.verify.rollout import verify_rollout

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
                script = fault_script(env, task, turn, kind, facts, rng)
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
            script = fault_script(env, task, turn, kind, facts, rng) if turn not in found else None
            injected = _played(env, task, turn, kind, script) if script is not None else None
            if injected is not None and not injected.verdicts[turn].valid:
                found[turn] = (injected, script)
            if len(found) == 2:
                break
        if len(found) < 2:
            continue
        rollout = play(env, task, {turn: script for turn, (_, script) in found.items()})
        verdicts = verify_rollout(env, task, rollout)
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


def _played(env: Environment, task: Task, turn: int, kind: str, script: TurnScript) -> Injected | None:
    """The trajectory with its verdicts and what to expect of it; None where the fault came out as another kind."""
    rollout = play(env, task, {turn: script})
    verdicts = tuple(verify_rollout(env, task, rollout))
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
