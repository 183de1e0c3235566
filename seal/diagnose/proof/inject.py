"""Proof by fault injection: gold trajectories with known faults, diagnosed, and counted against what was expected.

A faulty rollout is written as text in some call format and played by the rollout engine, as a policy's would be. What
is expected follows from the kind of fault (seal.diagnose.proof.fault_kinds) and from what execution did, never from the
diagnosis' own alignment.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from seal.core.labels import DEFAULT_PRIORITY, FAILURES, Label
from seal.core.types import Call, Result, Rollout, Task, Verdict
from seal.diagnose.diagnosis import diagnose
from seal.diagnose.proof.fault_kinds import CONTROLS, KINDS, NATURE, OF_CALL, mutated, texts_of
from seal.diagnose.trace import trace
from seal.env.base import Environment
from seal.policy.faults import TurnScript, gold_script
from seal.policy.scripted import ReplayPolicy
from seal.rollout.engine import Request
from seal.rollout.engine import play as play_all
from seal.verify.rollout import verify_rollout

FORMATS = ("pythonic", "qwen_xml", "llama_json", "openai", "words")


@dataclass(frozen=True, slots=True)
class Injected:
    """One gold trajectory with one fault, played. `expected`: the primary label first; empty for a control."""

    kind: str
    task: Task
    turn: int
    script: TurnScript
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


@dataclass(frozen=True, slots=True)
class Pair:
    """Two faults in one rollout, in two turns or in two calls of one turn (then the two turns are the same).

    `expected`: their labels; `present`: which of them the diagnosis gave to their turns, as roots.
    """

    kinds: tuple[str, str]
    turns: tuple[int, int]
    expected: tuple[str, str]
    present: tuple[str, ...]

    @property
    def both(self) -> bool:
        return self.present == self.expected


def injections(env: Environment, tasks: Sequence[Task], seed: int = 0) -> Iterator[Injected]:
    """Every kind of fault once a task, at a random turn that has a place for it, in a random call format."""
    for task in tasks:
        for kind in KINDS:
            rng = random.Random(f"{seed}/{task.task_id}/{kind}")
            format = rng.choice(formats_of(task))
            for turn in rng.sample(range(len(task.turns)), len(task.turns)):
                if (injected := _injected(env, task, turn, kind, format, rng)) is not None:
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


def pairs(env: Environment, tasks: Sequence[Task], seed: int = 0) -> Iterator[Pair]:
    """Two faults at once: at most one pair in two turns and one in two calls of a turn for every task.

    In two turns each fault fails its turn by itself and both do together. In one turn the labels differ.
    """
    for task in tasks:
        rng = random.Random(f"{seed}/{task.task_id}/pair")
        format = rng.choice(formats_of(task))
        for pair in (_two_turns(env, task, format, rng), _two_calls(env, task, format, rng)):
            if pair is not None:
                yield pair


def _two_turns(env: Environment, task: Task, format: str, rng: random.Random) -> Pair | None:
    kinds = sorted(set(NATURE) - {"loop", "swap"})
    options = [(turn, kind) for turn in range(len(task.turns)) for kind in kinds]
    rng.shuffle(options)
    found: dict[int, Injected] = {}
    for turn, kind in options:
        injected = _injected(env, task, turn, kind, format, rng) if turn not in found else None
        if injected is not None and not injected.verdicts[turn].valid:
            found[turn] = injected
        if len(found) == 2:
            break
    if len(found) < 2:
        return None
    rollout = play(env, task, {turn: injected.script for turn, injected in found.items()}, format)
    verdicts = verify_rollout(env, task, rollout)
    if any(verdicts[turn].valid for turn in found):
        return None  # one fault undid what the other did
    a, b = (found[turn] for turn in sorted(found))
    return _pair(env, task, rollout, verdicts, (a.kind, b.kind), (a.turn, b.turn), (a.expected[0], b.expected[0]))


def _two_calls(env: Environment, task: Task, format: str, rng: random.Random) -> Pair | None:
    """Of faults whose label no error can hide: each call is wrong by itself."""
    kinds = sorted(set(OF_CALL) & set(NATURE) - {"ignored_error", "malformed", "truncated"})
    turns = [turn for turn in range(len(task.turns)) if len(task.turns[turn].gold) > 1]
    for turn in rng.sample(turns, len(turns)):
        a, b = rng.sample(kinds, 2)
        script = mutated(env, task, turn, (a, b), format, rng) if NATURE[a] != NATURE[b] else None
        if script is None:
            continue
        rollout = play(env, task, {turn: script}, format)
        verdicts = verify_rollout(env, task, rollout)
        labels = [_nature(task, turn, kind, rollout) for kind in (a, b)]
        if labels[0] != labels[1] and not verdicts[turn].valid:
            return _pair(env, task, rollout, verdicts, (a, b), (turn, turn), labels)
    return None


def _pair(env, task, rollout, verdicts, kinds, turns, expected) -> Pair:
    rows = diagnose(env, task, rollout, verdicts)
    there = {(row.turn, str(row.label)) for row in rows if row.root}
    expected = tuple(map(str, expected))
    present = tuple(label for turn, label in zip(turns, expected, strict=True) if (turn, label) in there)
    return Pair(kinds, turns, expected, present)


def formats_of(task: Task) -> tuple[str, ...]:
    """The call formats that can say every gold call; words cannot say a text with a space, nor any other type."""
    values = [value for turn in task.turns for call in turn.gold for value in call.arguments.values()]
    plain = all(isinstance(value, str) and value and not set(value) & set(" =;") for value in values)
    return FORMATS if plain else FORMATS[:-1]


def play(env: Environment, task: Task, scripts: Mapping[int, TurnScript], format: str = "pythonic") -> Rollout:
    """The gold program with other scripts in some turns, written in a call format and played by the engine."""
    texts = [texts_of(scripts.get(turn, gold_script(task, turn)), format) for turn in range(len(task.turns))]
    policy = ReplayPolicy({f"{task.task_id}/0": texts}, format)
    return play_all(env, policy, [Request("injected", task, 0, 0)])[0]


def _injected(env: Environment, task: Task, turn: int, kind: str, format: str, rng: random.Random) -> Injected | None:
    """The trajectory with its verdicts and what to expect of it; None where the turn has no place for the fault, or it
    came out as another kind."""
    script = mutated(env, task, turn, (kind,), format, rng)
    if script is None:
        return None
    rollout = play(env, task, {turn: script}, format)
    verdicts = tuple(verify_rollout(env, task, rollout))
    expected = () if kind in CONTROLS else expected_labels(env, task, turn, kind, rollout, verdicts)
    if expected is None or (kind in CONTROLS and not all(v.valid for v in verdicts)):
        return None
    return Injected(kind, task, turn, script, rollout, verdicts, expected)


def expected_labels(
    env: Environment, task: Task, turn: int, kind: str, rollout: Rollout, verdicts: Sequence[Verdict]
) -> tuple[Label, ...] | None:
    """Labels in order of priority: the fault's nature, a refusal that follows from it, an error left unrepaired."""
    labels = {_nature(task, turn, kind, rollout)}
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
    text_error_shown = any(step.errors for step in steps[:-1])
    if text_error_shown or (failed and gold and kind != "loop"):
        labels.add(Label.RECOVERY_FAILURE)
    return tuple(sorted(labels, key=DEFAULT_PRIORITY.index))


def _nature(task: Task, turn: int, kind: str, rollout: Rollout) -> Label:
    """The label of a fault by its kind. A skipped step that no tool missed is a call that was not made."""
    results = [result for step in rollout.steps if step.turn == turn for result in step.results]
    skipped = kind in ("skip_precondition", "skip_permission")
    return Label.MISSING_TOOL_CALL if skipped and not any(map(_refusal, results)) else NATURE[kind]


def _refusal(result: Result) -> bool:
    return result.error_kind in ("precondition", "permission")


def _writes(env: Environment, task: Task, turn: int, ran: Sequence[tuple[Call, Result]], call: Call) -> bool:
    """Whether a call of a turn changes the public state where it is made."""
    calls, before = [call for call, _ in ran], [gold for earlier in task.turns[:turn] for gold in earlier.gold]
    return trace(env, task, before, calls).wrote[calls.index(call)]
