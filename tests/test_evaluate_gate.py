"""The gate: a cue that hurts is rolled back, one that does not is kept, whatever else is new beside them."""

from dataclasses import replace

from seal.core.labels import DEFAULT_PRIORITY
from seal.env.shop import ShopEnv
from seal.evaluate.gate import ALL, gate, shows
from seal.interface.state import InterfaceState, Item
from seal.policy.base import Action, Limits
from seal.policy.scripted import GoldPolicy

ENV = ShopEnv(train=1, dev=12, test=1)
HARM, HELP, IDLE = "harm", "help", "idle"


class Codec:
    """Sees the interface: the prompt's ids say which cues are in the docs."""

    format = "words"
    words = (HARM, HELP, IDLE)

    def prompt(self, docs, hints):
        return [1 + self.words.index(note.text) for doc in docs for note in doc.notes]

    def user(self, message, revealed):
        return []

    def results(self, shown):
        return []

    def encode_action(self, text):
        return [9]


class CuePolicy(GoldPolicy):
    """Gold; where it reads HARM it does nothing, and without HELP in sight it fails half of its samples."""

    codec = Codec()

    def act(self, observations, temperature, limits):
        return [Action(self._said(o), ids=(9,), logprobs=(0.0,)) for o in observations]

    def _said(self, o):
        cues = [i - 1 for i in o.ids if i != 9]
        gives_up = Codec.words.index(HARM) in cues or (o.sample % 2 and Codec.words.index(HELP) not in cues)
        return "done" if gives_up else self._text(self._script(o), o.step)


def _item(target, text):
    return Item("purpose", target, "docs", text, "", "r1")


def _gate(old, new, n_tasks=12):
    limits = Limits(16, 256)
    return gate(ENV, CuePolicy(), old, new, n_tasks, "full", 1.0, limits, DEFAULT_PRIORITY, "r1", 1, 0, samples=2)


def _tools():
    """The two tools that most dev tasks show."""
    counts = {}
    for task in ENV.tasks():
        if task.split == "dev":
            for tool in task.toolset:
                counts[tool] = counts.get(tool, 0) + 1
    return sorted(counts, key=lambda tool: (-counts[tool], tool))[:2]


def test_the_harmful_cue_goes_and_the_others_stay():
    first, second = _tools()
    old = InterfaceState((_item(second, HELP),))
    bad, good = _item(first, HARM), _item(second, IDLE)
    gated = _gate(old, InterfaceState((*old.items, bad, good)), n_tasks=40)
    decisions = {row["item"]: row for row in gated.decisions}
    assert decisions[bad.id]["decision"] == "rollback" and decisions[bad.id]["high"] < 0
    assert decisions[good.id]["decision"] == "keep" and decisions[good.id]["uplift"] == 0
    assert {item.id for item in gated.state.active} == {old.items[0].id, good.id}
    assert [row["action"] for row in gated.changes] == ["rollback"]
    assert "gate: -" in gated.changes[0]["reason"]
    rerun = _gate(old, InterfaceState((*old.items, bad, good)), n_tasks=40)
    assert rerun == gated


def test_a_helpful_cue_is_kept_and_all_rollouts_are_counted():
    first, _ = _tools()
    new = InterfaceState((_item(first, HELP),))
    gated = _gate(InterfaceState(), new)
    rows = {row["item"]: row for row in gated.decisions}
    assert rows[ALL]["decision"] == "keep" and rows[ALL]["uplift"] > 0
    assert gated.state == new
    shown = rows[new.items[0].id]["n"]
    assert 0 < shown <= 24
    assert gated.spent["rollouts"] == 2 * 24 + shown and gated.spent["tokens"] > 0


def test_nothing_new_or_no_probes_costs_nothing():
    state = InterfaceState((_item("issue_refund", HARM),))
    for old, new, n_tasks in ((state, state, 12), (InterfaceState(), state, 0)):
        gated = _gate(old, new, n_tasks)
        assert gated.state == new and gated.spent["rollouts"] == 0 and not gated.decisions


def test_what_a_probe_can_show_depends_on_the_mode():
    task = ENV.tasks()[0]
    tool = task.toolset[0]
    note, other = _item(tool, IDLE), _item("no_such_tool", IDLE)
    after, hint = replace(note, where="feedback"), Item("guidance", task.category, "hint", IDLE, "", "r1")
    state = InterfaceState((note, other, after, hint))
    seen = {
        mode: [shows(ENV, task, state, item, mode) for item in (note, other, after, hint)]
        for mode in ("full", "docs_only", "feedback_only", "off")
    }
    assert seen == {
        "full": [True, False, True, True],
        "docs_only": [True, False, False, True],
        "feedback_only": [True, False, True, False],
        "off": [False] * 4,
    }


def test_a_cue_that_no_probe_shows_is_untested():
    gated = _gate(InterfaceState(), InterfaceState((_item("no_such_tool", HARM),)))
    assert gated.decisions[1]["decision"] == "untested" and len(gated.state.active) == 1
