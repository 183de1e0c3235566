"""What a person reads of a failed turn: the values that were expected, and those that were given."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.commands.check import expected, played
from seal.commands.expected import missed, state_line
from seal.core.types import Call, UserTurn
from seal.env.base import Session
from seal.env.shop import ShopEnv

TASK = ShopEnv(train=1, dev=1, test=4).tasks()[0]
C1 = Call("cancel", {"order": "O7", "reason": "C1"})


@pytest.mark.parametrize(
    ("made", "line"),
    [
        ([Call("cancel", {"order": "O7", "reason": "C2"})], "cancel: expected reason=C1, got C2"),
        ([Call("cancel", {"order": "O7"})], "cancel: expected reason=C1, got nothing"),
        ([Call("cancel", {**C1.arguments, "at": [1]})], "cancel: unexpected at=[1]"),
        ([Call("cancel", {"order": "O8", "reason": "C 2"}), Call("cancel", {"order": "O7", "reason": "C2"})],
         "cancel: expected reason=C1, got C2"),
        ([], "expected cancel(order=O7, reason=C1), not called"),
        ([Call("stop", {})], "expected cancel(order=O7, reason=C1), not called"),
    ],
)  # fmt: skip
def test_a_gold_call_that_was_not_made_is_told_in_values(made, line):
    assert missed([C1], made) == [line]


calls = st.builds(
    Call, st.sampled_from("ab"), st.dictionaries(st.sampled_from("xy"), st.integers(0, 2) | st.text(max_size=2))
)


@given(st.lists(calls, max_size=4), st.lists(calls, max_size=4))
def test_a_line_for_each_gold_call_and_none_where_all_were_made(gold, made):
    assert missed(gold, [*made, *gold]) == []
    assert len(missed(gold, made)) == sum(1 for call in gold) - len(_common(gold, made))


def _common(gold, made):
    free, found = list(made), []
    for call in gold:
        if call in free:
            free.remove(call)
            found.append(call)
    return found


class Told(Session):
    """Its state is what it was told last."""

    def raw_results(self, calls):
        self._state = dict(calls[0].arguments)
        return []

    def state(self):
        return self._state


class Telling(ShopEnv):
    def open(self, task):
        return Told()


@pytest.mark.parametrize(
    ("ours", "theirs", "line"),
    [
        ({"a": 1}, {"a": 1}, ""),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, "state a.b: expected 2, got 1"),
        ({"a": {"b": [{"c": "x"}]}}, {"a": {"b": [{"c": "y z"}]}}, 'state a.b.0.c: expected "y z", got x'),
        ({"a": {"b": [1]}}, {"a": {"b": [1, 2]}}, "state a.b.1: expected 2, got nothing"),
        ({}, {"a": 1}, "state a: expected 1, got nothing"),
    ],
)
def test_a_state_is_told_where_it_differs(ours, theirs, line):
    task = replace(TASK, turns=(UserTurn("", (Call("tell", theirs),)),))
    assert state_line(Telling(train=1, dev=1, test=4), task, [[Call("tell", ours)]], 0) == line


def test_check_says_it_of_turns_that_failed_alone():
    env = ShopEnv(train=1, dev=1, test=4)
    task = next(t for t in env.tasks() if t.category == "base" and any(c.arguments for c in t.turns[0].gold))
    texts = [[_text(call) for call in turn.gold] for turn in task.turns]
    assert expected(env, task, played(env, task, [[said] for said in texts])) == {}
    told = expected(env, task, played(env, task, [[] for _ in texts]))["expected"]
    assert "turn 0" in told and any("not called" in line for line in told["turn 0"])


def _text(call):
    return f"{call.name}({', '.join(f'{name}={value!r}' for name, value in call.arguments.items())})"
