"""Nothing of gold, hidden state or task text reaches the policy through the interface: canaries and real domains."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.core.labels import FAILURES
from seal.core.types import (
    CUE_KINDS,
    Call,
    CallError,
    Fact,
    Order,
    Param,
    Result,
    Rollout,
    Step,
    Task,
    ToolDoc,
    UserTurn,
)
from seal.evolve.baselines import published, random_items, static
from seal.evolve.evidence import Evidence
from seal.evolve.guard import guard_for, words
from seal.evolve.orders import executions_of, find_orders
from seal.evolve.selection import Reader, evolve
from seal.interface.feedback import feedback, parse_feedback
from seal.interface.render import hints, render
from seal.interface.state import InterfaceState, Item
from seal.interface.view import View
from seal.interface.wording import RECOVERY_TEMPLATES
from seal.settings.evolve import EvolveParams

FACTS = (
    Fact("refund", "reason", "enum", {"late": "K1", "damaged": "K3"}),
    Fact("refund", "order", "format", "ORD-"),
    Fact("refund", "", "needs", ["verify_buyer"]),
)
DOCS = (
    ToolDoc("refund", "give money back", (Param("order"), Param("reason"))),
    ToolDoc("verify_buyer", "check who it is", (Param("order"),)),
)


def task(secret="zanzibar", hidden="xylophone", message="please refund my order quick as you can"):
    gold = (Call("refund", {"order": f"ORD-{secret}", "reason": "K3", "note": "money it who"}),)
    return Task("t", "e", "base", "s", "train", (UserTurn(message, gold),), {"db": [{"k": hidden}]}, ("refund",))


def cue(text, kind="enum", target="refund.reason"):
    return Item(kind, target, "docs", text, "", "r1")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("damaged K3 late K1", ""),
        ("one of K1 K3", ""),
        ("starts ORD-", ""),
        ("after verify_buyer", ""),
        ("give money back", ""),
        ("starts ORD-zanzibar", "gold argument value"),
        ("one of xylophone", "hidden state value"),
        ("quick", "task text"),
        ("brontosaurus", "without a source"),
        ("money it who", "gold argument value"),
    ],
)
def test_a_cue_says_only_what_has_a_source(text, reason):
    found = guard_for(FACTS, DOCS, [task()]).reasons(cue(text))
    assert bool(found) is bool(reason) and all(reason in text for text in found)


def test_a_run_of_words_of_a_task_is_no_cue():
    sentence = "give it back who check money"
    found = guard_for(FACTS, DOCS, [task(message=sentence)]).reasons(cue(sentence))
    assert found and "task text" in found[0]


def test_templates_pass():
    guard = guard_for(FACTS, DOCS, [task()])
    items = [Item("recover_any", kind, "feedback", text, "", "") for kind, text in RECOVERY_TEMPLATES.items()]
    assert [guard.reasons(item) for item in items] == [[]] * len(items)


def test_evolve_refuses_what_the_guard_refuses():
    """A orders prerequisite that neither facts nor docs know."""
    profile = [
        {"category": "base", "tool": "refund", "parameter": "", "label": "constraint_violation", "n": 5, "rate": 1}
    ]
    orders = [Order("refund", name, "precondition", 3, 0, 0.5) for name in ("verify_buyer", "zanzibar")]
    params = EvolveParams(kinds=("order",))
    state, rows = evolve(
        InterfaceState(), Evidence(profile, FACTS[:2], orders, docs=DOCS, tasks=[task()]), params, "r1"
    )
    assert {item.text for item in state.active} == {"after verify_buyer"}
    assert {(row["action"], row["text"]) for row in rows} == {
        ("add", "after verify_buyer"),
        ("refuse", "after zanzibar"),
    }
    assert "gold argument value" in next(row["reason"] for row in rows if row["action"] == "refuse")


SECRET = st.text("bcdfgjqvwxz", min_size=9, max_size=12)


@settings(max_examples=40, deadline=None)
@given(SECRET, SECRET, SECRET, st.sets(st.sampled_from(sorted(FAILURES)), min_size=1))
def test_canaries_never_surface(gold, hidden, said, labels):
    """Secrets in gold, state and messages: evolved under every failure, no text the policy may read holds one."""
    tasks = [task(gold, hidden, f"please {said} it")]
    profile = [
        {"category": "base", "tool": tool, "parameter": param, "label": label, "n": 5, "rate": 0.5, "n_parent": 5}
        for label in sorted(labels)
        for tool, param in (("refund", "reason"), ("refund", ""), ("verify_buyer", "order"))
    ]
    params = EvolveParams(min_support=1, max_new=99, token_budget=9999, kinds=("all",))
    state, _ = evolve(InterfaceState(), Evidence(profile, FACTS, docs=DOCS, tasks=tasks), params, "r1")
    assert state.active
    assert_silent(state, DOCS, {gold, hidden, said})


def assert_silent(state, docs, secrets):
    """Everything the interface adds, whatever call fails in whatever way."""
    added = [note.text for doc in render(docs, state) for note in doc.notes] + [*hints("base", state)]
    for doc in docs:
        for kind in RECOVERY_TEMPLATES:
            for arguments in ({}, {param.name: "1" for param in doc.params}):
                result = Result("error", "error", kind)
                added.append(feedback(Call(doc.name, arguments), result, docs, state, "feedback_only", 1))
    added += [parse_feedback(CallError(kind, "x"), docs, state) for kind in ("syntax", "unknown_tool", "truncated")]
    text = " ".join(added)
    assert not [secret for secret in secrets if secret in text]


def all_cues(env, call_format="words", tasks=()):
    """Everything that evolution could ever say about an environment."""
    tools = sorted({tool for task in env.tasks() for tool in task.toolset})
    facts = tuple(replace(fact, documented=False) for fact in env.facts(tools))
    profile = [
        {"category": category, "tool": tool, "parameter": "", "label": label, "n": 5, "rate": 0.5, "n_parent": 5}
        for category in sorted({task.category for task in env.tasks()})
        for tool in tools
        for label in sorted(FAILURES)
    ]
    orders = [Order(a, b, kind, 5, 0, 0.7) for a, b in zip(tools, tools[1:]) for kind in ("precondition", "permission")]
    params = EvolveParams(min_support=1, max_new=10**6, token_budget=10**6, kinds=("all",))
    evidence = Evidence(profile, facts, orders, docs=docs_of(env), tasks=tasks or env.tasks())
    state, rows = evolve(InterfaceState(), evidence, params, "r1", Reader(call_format))
    assert not [row for row in rows if row["action"] == "refuse"]
    return facts, tools, state


def docs_of(env):
    docs = {}
    for one in {task.toolset: task for task in env.tasks()}.values():
        docs.update((doc.name, doc) for doc in env.docs(one, len(one.turns) - 1))
    return tuple(docs[name] for name in sorted(docs))


def load(name, **options):
    from seal.env import load_env

    return load_env(name, **options)


@pytest.mark.parametrize("name", ["shop", "compliance"])
def test_interfaces_of_built_in_domains_leak_nothing(name):
    env = load(name)
    facts, _, state = all_cues(env)
    guard = guard_for(facts, docs_of(env), env.tasks())
    for items in (state, static(facts), published(facts), random_items(facts, 400, 0)):
        assert items.active
        assert [(item.text, found) for item in items.active if (found := guard.reasons(item))] == []


@pytest.mark.slow
def test_bfcl_interfaces_leak_nothing_of_800_tasks():
    env = load("bfcl")
    tasks, docs = env.tasks(), docs_of(env)
    assert len(tasks) == 800
    facts, _, state = all_cues(env, "qwen_xml")
    guard = guard_for(facts, docs, tasks)
    assert {item.kind for item in state.active} >= {*CUE_KINDS} - {"needs", "role"}
    assert [(item.text, found) for item in state.active if (found := guard.reasons(item))] == []


def answers_to(env, state, tasks):
    """What the interface adds after every kind of error of every tool that a task's gold calls."""
    seen, states = set(), {}
    for one in tasks:
        last = len(one.turns) - 1
        if one.toolset not in states:  # what concerns no tool of the task says nothing there
            here = {*one.toolset, *RECOVERY_TEMPLATES}
            items = [item for item in state.active if item.target.partition(".")[0] in here]
            states[one.toolset] = InterfaceState(tuple(items))
        for mode in ("full", "feedback_only"):
            view = View(env, one, states[one.toolset], mode)
            for call in (call for turn in one.turns for call in turn.gold):
                key = (one.toolset, tuple(one.holdout), call.name, mode)
                if key not in seen:
                    seen.add(key)
                    for kind in RECOVERY_TEMPLATES:
                        raw = f"error {dict(call.arguments)}"
                        yield one, view.shown(call, Result(raw, raw, kind), last, 1)[len(raw) :]


@pytest.mark.slow
def test_bfcl_feedback_leaks_nothing_of_800_tasks():
    """With the slots filled: every answer to every error of the gold calls, whose values the raw text repeats."""
    env = load("bfcl")
    facts, _, state = all_cues(env, "qwen_xml")
    guard = guard_for(facts, docs_of(env), env.tasks())
    answers = {text: one.task_id for one, text in answers_to(env, state, env.tasks())}
    assert len(answers) > 500
    parts = {part: id_ for text, id_ in answers.items() for part in text.split(" | ")}
    assert {part: (id_, found) for part, id_ in parts.items() if (found := guard.reasons(cue(part, "recover")))} == {}


def test_bfcl_feedback_names_tools_and_no_answer():
    """Handed case iface_no_answer_leak: an airport code that has no route."""
    env = load("bfcl")
    one = next(task for task in env.tasks() if task.task_id == "multi_turn_base_150")
    docs = env.docs(one, 0)
    state = InterfaceState((Item("recover_any", "other", "feedback", RECOVERY_TEMPLATES["other"], "", ""),))
    raw = "Error during execution: No available route for the given airports."
    arguments = {"travel_from": "RVM", "travel_to": "STB", "travel_date": "2026-10-06", "travel_class": "economy"}
    text = feedback(Call("get_flight_cost", arguments), Result(raw, raw, "other"), docs, state)
    assert text.startswith(raw + " | ")
    assert {"get_nearest_airport_by_city", "list_all_airports"} <= set(text.split())
    assert not [secret for secret in ("RMS", "SBK", "220.0") if secret in text]


@pytest.mark.parametrize("name", ["shop", "compliance"])
def test_orders_mined_are_those_the_executor_enforces(name):
    """Gold play in which the call that a turn ends with is tried before each of the others."""
    env = load(name)
    rollouts = []
    for one in [task for task in env.tasks() if task.split == "train"]:
        session, steps = env.open(one), []
        for turn, user in enumerate(one.turns):
            for call in [tried for step in user.gold for tried in (user.gold[-1], step)]:
                steps.append(Step(turn, len(steps), "", (call,), (), (session.call(call),)))
        rollouts.append(Rollout(one.task_id, one.task_id, 0, 0, "off", "gold", "bare", tuple(steps), "finished"))
    facts = env.facts([tool.name for tool in env.domain.tools])
    enforced = {(f.tool, other) for f in facts if f.kind in ("needs", "role") for other in f.value}
    found = {(m.tool, m.prerequisite) for m in find_orders(map(executions_of, rollouts))}
    assert found == enforced


BFCL = pytest.param("bfcl", marks=pytest.mark.slow)


def stated_facts(env, facts):
    """Tool -> all that its own docs say of it, and the codes that its executor enforces."""
    said = defaultdict(list)
    for doc in docs_of(env):
        texts = [doc.name, doc.description, *(note.text for note in doc.notes)]
        texts += [f"{p.name} {p.description} {p.enum} {p.default}" for p in doc.params]
        said[doc.name] += texts
    for fact in facts:
        if fact.kind == "enum" and isinstance(fact.value, Mapping):
            said[fact.tool] += fact.value.values()
    return {tool: " ".join(texts).lower() for tool, texts in said.items()}


@pytest.mark.parametrize("name", ["shop", "compliance", BFCL])
def test_no_cue_holds_a_gold_value_that_its_tool_does_not_tell(name):
    """Without the guard's own sources: values of gold calls against the docs of the tool that is called."""
    env = load(name)
    facts, tools, state = all_cues(env, "qwen_xml" if name == "bfcl" else "words")
    told, gold = stated_facts(env, facts), defaultdict(set)
    for call in (call for one in env.tasks() for turn in one.turns for call in turn.gold):
        for value in call.arguments.values():
            gold[call.name] |= {str(leaf).lower() for leaf in (value if isinstance(value, list) else [value])}
    assert sum(map(len, gold.values())) > 100
    leaked = []
    for item in state.active:
        tool = next((tool for tool in tools if f"{item.target}.".startswith(f"{tool}.")), "")
        said = f" {' '.join(words(item.text.replace('must succeed first', '')))} "
        own = told.get(tool, "")
        leaked += [(item, v) for v in gold[tool] if len(v) > 1 and f" {' '.join(words(v))} " in said and v not in own]
    assert not leaked


def texts_at(env, one, turn, state, mode):
    """What the interface adds to a task at one turn: notes, hints, and what follows any error of any call."""
    view = View(env, one, state, mode)
    docs, in_sight = view.docs(turn), [doc.name for doc in view.docs(turn)]
    yield from (note.text for doc in (*docs, *view.revealed(turn)) for note in doc.notes)
    yield from view.hints() if not turn else ()
    for tool in in_sight:
        for kind in RECOVERY_TEMPLATES:
            arguments = {param.name: "1" for doc in docs if doc.name == tool for param in doc.params}
            for tried in ({}, arguments):
                yield view.shown(Call(tool, tried), Result("error", "error", kind), turn, 1).removeprefix("error")
    yield from (view.shown_error(CallError(kind, "no such tool"), turn) for kind in ("syntax", "unknown_tool"))


@pytest.mark.parametrize("name", ["shop", "compliance", BFCL])
def test_no_text_names_a_tool_that_the_task_still_withholds(name):
    """One task of each toolset, its withheld tools and turn; every cue that there could be, and every error."""
    env = load(name)
    _, _, state = all_cues(env, "qwen_xml" if name == "bfcl" else "words")
    state = replace(state, version=2)
    tasks = {(one.toolset, *one.holdout.items()): one for one in env.tasks() if one.holdout}
    named, seen = [], 0
    for one in list(tasks.values())[:: 1 + len(tasks) // 12]:
        here = {*one.toolset, *RECOVERY_TEMPLATES, "*", one.category, "syntax"}
        cues = InterfaceState(tuple(i for i in state.active if i.target in here or i.target.split(".")[0] in here), 2)
        for turn in range(max(one.holdout.values())):
            withheld = [tool for tool, reveal in one.holdout.items() if reveal > turn]
            pattern = re.compile(rf"(?<!\w)({'|'.join(withheld)})(?!\w)")
            for mode in ("full", "feedback_only"):
                texts = list(texts_at(env, one, turn, cues, mode))
                seen += len(texts)
                named += [(one.task_id, turn, mode, text) for text in texts if pattern.search(text)]
    assert seen > 1000 and not named
