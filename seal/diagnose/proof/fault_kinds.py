"""What a policy with one known fault says in a user turn: mutations of gold programs for the proof of the diagnosis.

Nothing here, and nothing in place.py and mutations.py, knows the rules, the schema check or the alignment of the
diagnosis (tests/test_diagnose_inject.py holds them to that): text is broken as text, in the format it is spoken in; a
literal is the user's where it stands in the message as it is; a value names a thing where the task's world holds it.
"""

import random
from collections.abc import Callable, Mapping, Sequence

from seal.core.labels import Label
from seal.core.types import Task
from seal.diagnose.proof import mutations as m
from seal.diagnose.proof.place import Place
from seal.env.base import Environment
from seal.policy.faults import TurnScript, spliced
from seal.tools.parse import format_calls

Mutation = Callable[[Place], TurnScript | None]
# Kind -> what is said, and the label that the definition of labels (design, section 4) gives to a fault of this nature;
# what execution adds is in seal.diagnose.proof.inject. None: a control, no fault.
OF_CALL: Mapping[str, tuple[Mutation, Label | None]] = {
    "malformed": (m.malformed, Label.INVALID_TOOL_CALL),
    "truncated": (m.truncated, Label.INVALID_TOOL_CALL),
    "unknown_tool": (m.misspelt_tool, Label.INVALID_TOOL_CALL),
    "missing_argument": (m.missing_argument, Label.ARGUMENT_MISMATCH),
    "extra_argument": (m.of_call("extra_argument"), Label.ARGUMENT_MISMATCH),
    "misspelt_argument": (m.misspelt_parameter, Label.ARGUMENT_MISMATCH),
    "wrong_type": (m.wrong_type, Label.ARGUMENT_MISMATCH),
    "altered_literal": (m.altered_literal, Label.ARGUMENT_MISMATCH),
    "wrong_code": (m.wrong_code, Label.ARGUMENT_MISMATCH),
    "wrong_format": (m.wrong_format, Label.ARGUMENT_MISMATCH),
    "repeated_failure": (m.repeated_failure, Label.ARGUMENT_MISMATCH),
    "ignored_error": (m.ignored_error, Label.ARGUMENT_MISMATCH),
    "skip_precondition": (m.skipped("needs"), Label.CONSTRAINT_VIOLATION),
    "skip_permission": (m.skipped("role"), Label.CONSTRAINT_VIOLATION),
    "drop": (m.of_call("drop"), Label.MISSING_TOOL_CALL),
    "wrong_tool": (m.of_call("wrong_tool"), Label.MISSING_TOOL_CALL),
    "stale_referent": (m.stale_referent, Label.STATE_MISMATCH),
    "recovered": (m.recovered, None),
    "explored": (m.explored, None),
    "restated": (m.restated, None),
}
OF_TURN: Mapping[str, tuple[Mutation, Label | None]] = {
    "gave_up": (m.gave_up, Label.ARGUMENT_MISMATCH),
    "empty": (m.of_turn("empty"), Label.MISSING_TOOL_CALL),
    "asks": (m.asks, Label.MISSING_TOOL_CALL),
    "premature_end": (m.of_turn("premature_end"), Label.MISSING_TOOL_CALL),
    "extra_call": (m.of_turn("extra_call"), Label.SPURIOUS_TOOL_CALL),
    "spurious": (m.of_turn("spurious"), Label.SPURIOUS_TOOL_CALL),
    "early": (m.of_turn("early"), Label.SPURIOUS_TOOL_CALL),
    "other_thing": (m.other_thing, Label.STATE_MISMATCH),
    "swap": (m.of_turn("swap"), Label.RESPONSE_MISMATCH),
    "loop": (m.of_turn("loop"), Label.BUDGET_EXHAUSTED),
}
NATURE: Mapping[str, Label] = {kind: label for kind, (_, label) in {**OF_CALL, **OF_TURN}.items() if label}
CONTROLS = tuple(kind for kind, (_, label) in OF_CALL.items() if label is None)
KINDS = (*sorted(NATURE), *CONTROLS)


def mutated(
    env: Environment, task: Task, turn: int, kinds: Sequence[str], format: str, rng: random.Random
) -> TurnScript | None:
    """The script of a turn with one fault of each kind, of single calls in as many calls; one of a whole turn comes
    alone. None where the turn has no place for one of them."""
    if kinds[0] in OF_TURN:
        return OF_TURN[kinds[0]][0](Place(env, task, turn, 0, format, rng))
    found: dict[int, TurnScript] = {}
    order = list(range(len(task.turns[turn].gold)))
    rng.shuffle(order)
    for kind in kinds:
        for index in order:
            steps = OF_CALL[kind][0](Place(env, task, turn, index, format, rng)) if index not in found else None
            if steps is not None:
                found[index] = steps
                break
    return spliced(task, turn, found) if len(found) == len(kinds) else None


def texts_of(script: TurnScript, format: str) -> list[str]:
    """What the policy writes, step by step."""
    return [step if isinstance(step, str) else format_calls(step, format) for step in script]
