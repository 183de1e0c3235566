"""What holds for every built-in domain: gold programs run, splits share nothing, what is withheld is hidden."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.core.types import Call, Note
from seal.env.compliance import ComplianceEnv
from seal.env.domain_tasks import CATEGORIES
from seal.env.shop import ShopEnv
from seal.interface.render import render
from seal.interface.state import InterfaceState
from seal.interface.wording import PLAIN_KINDS, notes_of

MAKERS = {"shop": ShopEnv, "compliance": ComplianceEnv}
ENVS = {name: make() for name, make in MAKERS.items()}


@pytest.fixture(params=ENVS)
def env(request):
    return ENVS[request.param]


def test_every_gold_call_succeeds(env):
    for task in env.tasks():
        session = env.open(task)
        for turn in task.turns:
            assert len(turn.gold) < env.max_steps_per_turn
            for call in turn.gold:
                assert session.call(call).error_kind == "", (task.task_id, call)


def test_four_categories_a_scenario_and_no_scenario_in_two_splits(env):
    splits: dict[str, set[str]] = {}
    for task in env.tasks():
        splits.setdefault(task.scenario_id, set()).add(task.split)
    assert all(len(found) == 1 for found in splits.values())
    assert Counter(task.category for task in env.tasks()) == dict.fromkeys(CATEGORIES, len(splits))
    assert Counter(next(iter(s)) for s in splits.values()) == {"train": 60, "dev": 15, "test": 50}


def test_withheld_tools_are_hidden_until_their_turn_and_then_revealed(env):
    for task in env.tasks():
        for tool, turn in task.holdout.items():
            assert tool not in {doc.name for doc in env.docs(task, turn - 1)}
            assert tool in {doc.name for doc in env.revealed(task, turn)}
            assert tool in {call.name for call in task.turns[turn].gold}
            assert not task.turns[turn - 1].gold


def test_a_missing_value_is_not_in_the_message_and_comes_one_turn_later(env):
    for task in env.tasks():
        if task.category != "miss_param":
            continue
        (vague,) = [i for i, turn in enumerate(task.turns) if not turn.gold]
        value = task.turns[vague + 1].message.removeprefix("it is ")
        assert value not in task.turns[vague].message.split()
        assert task.turns[vague + 1].gold


def test_every_tool_is_asked_for_or_needed_in_every_split(env):
    for split in ("train", "test"):
        tasks = [task for task in env.tasks() if task.split == split]
        assert {call.name for t in tasks for u in t.turns for call in u.gold} == {t.name for t in env.domain.tools}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_tasks_are_a_function_of_the_seed(make):
    assert make(seed=3).tasks() == make(seed=3).tasks()
    assert make(seed=3).tasks() != make(seed=4).tasks()


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(sorted(ENVS)),
    st.text(max_size=12),
    st.dictionaries(
        st.sampled_from(["order", "document", "reason", "x"]),
        st.one_of(st.none(), st.integers(), st.text(max_size=5)),
        max_size=3,
    ),
)
def test_no_call_raises_and_no_error_changes_state(which, name, arguments):
    env = ENVS[which]
    for tool in (name, *(tool.name for tool in env.domain.tools)):
        session = env.open(env.tasks()[0])
        if session.call(Call(tool, arguments)).error_kind:
            assert session.state() == {}


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=20, deadline=None)
@given(st.floats(0, 1), st.floats(0, 1))
def test_docs_tell_the_share_they_are_asked_to_and_the_rest_is_left_to_the_interface(name, one, other):
    """What is told at a lower share is told at a higher one; told and left make the whole, in the same words."""
    whole, tools = ENVS[name], [tool.name for tool in ENVS[name].domain.tools]
    hidden = notes_of(whole.facts(tools))
    told: dict[float, set[tuple[str, Note]]] = {}
    for share in (one, other):
        env = MAKERS[name](train=1, dev=0, test=1, told=share)
        docs = env.documents(env.tasks()[0])
        told[share] = {(doc.name, note) for doc in docs.values() for note in doc.notes}
        assert len(told[share]) == round(share * len(hidden))
        left = notes_of(env.facts(tools))
        assert sorted([(*c.target.partition(".")[::2], c.text) for c in hidden]) == sorted(
            [(tool, note.param, note.text) for tool, note in told[share]]
            + [(*c.target.partition(".")[::2], c.text) for c in left]
        )
        assert env.open(env.tasks()[0])._domain is whole.domain  # what the executor enforces is the same
    assert told[min(one, other)] <= told[max(one, other)]


def test_a_cue_that_repeats_what_the_doc_tells_is_not_shown_twice():
    env = ShopEnv(train=1, dev=0, test=1, told=1.0)
    docs = list(env.documents(env.tasks()[0]).values())
    facts = [replace(fact, documented=False) for fact in env.facts([doc.name for doc in docs])]
    state = InterfaceState(tuple(cue.item() for cue in notes_of([f for f in facts if f.kind in PLAIN_KINDS])))
    assert state.items and render(docs, state) == tuple(docs)
