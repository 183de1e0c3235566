"""The gate: a cue that hurts is rolled back, one that does not is kept, whatever else is new beside them."""

from dataclasses import replace

from seal.core.seeds import RoundKey
from seal.diagnose.judge import judge as judge_all
from seal.env.shop import ShopEnv
from seal.evolve.gate import ALL, gate, shows
from seal.interface.state import InterfaceState, Item
from seal.policy.base import Action
from seal.policy.scripted import GoldPolicy
from seal.settings.evolve import EvolveParams, GateParams
from seal.settings.play import CollectParams
from seal.settings.rounds import Defaults, Round

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

    def count(self, text):
        return 7


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


def _gate(old, new, n_tasks=12, env=ENV, policy=None, **options):
    collect = CollectParams(max_action_tokens=16, context=256)
    evolve = EvolveParams(gate=GateParams(tasks=n_tasks))
    params = Round(parent="r0", env="shop", **dict(Defaults(collect=collect, evolve=evolve)))
    return gate(env, policy or CuePolicy(), old, new, params, RoundKey("r1", 1, 0), **options)


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
    assert [(row["action"], row["tokens"]) for row in gated.changes] == [("rollback", 7)], "as the policy counts"
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
    assert 0 < shown <= 48
    assert gated.spent["rollouts"] == 2 * 48 + shown and gated.spent["tokens"] > 0


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


class Watched(CuePolicy):
    """Keeps the first observations: task, sample, seed and the cues in sight. It gives up at any of `bad`."""

    def __init__(self, *bad):
        super().__init__()
        self.bad, self.seen = bad, []

    def act(self, observations, temperature, limits):
        for o in observations:
            if not o.turn and not o.step:
                cues = tuple(sorted(Codec.words[i - 1] for i in o.ids if i != 9))
                self.seen.append((o.task.task_id, o.sample, o.seed, cues))
        return super().act(observations, temperature, limits)

    def _said(self, o):
        cues = {Codec.words[i - 1] for i in o.ids if i != 9}
        return "done" if cues & {*self.bad} else self._text(self._script(o), o.step)


def test_all_arms_play_the_same_seeds():
    """With all, with none, and without each: a task's sample is one draw."""
    first, _ = _tools()
    policy, new = Watched(), InterfaceState((_item(first, HELP), _item(first, IDLE)))
    _gate(InterfaceState(), new, policy=policy)
    arms = {}
    for task, sample, seed, cues in policy.seen:
        arms.setdefault((task, sample), []).append((seed, cues))
    assert {len(played) for played in arms.values()} == {2, 4}
    assert all(len({seed for seed, _ in played}) == 1 for played in arms.values())
    assert {(HELP, IDLE), (HELP,), (IDLE,), ()} in [{cues for _, cues in played} for played in arms.values()]
    assert len({played[0][0] for played in arms.values()}) == len(arms)


def test_when_no_single_cue_is_to_blame_but_all_together_hurt_all_go():
    first, second = _tools()
    new = InterfaceState((_item(first, HARM), _item(first, IDLE), _item(second, HELP)))
    gated = _gate(InterfaceState(), new, n_tasks=40, policy=Watched(HARM, IDLE))
    effects = {row["item"]: (row["decision"], row["high"] < 0) for row in gated.decisions}
    assert effects == {ALL: ("rollback", True), **{item.id: ("rollback", False) for item in new.items}}
    assert not gated.state.active and {item.status for item in gated.state.items} == {"rolled_back"}
    reasons = {row["reason"] for row in gated.changes}
    assert len(gated.changes) == 3 and len(reasons) == 1, "that of all together"


class Marred:
    """An environment, some of whose dev tasks cannot be solved."""

    def __init__(self, env, bad):
        self._env, self._bad = env, bad

    def __getattr__(self, name):
        return getattr(self._env, name)

    def tasks(self):
        return [replace(t, known_bad="no answer" if t.task_id in self._bad else "") for t in self._env.tasks()]


def test_probes_are_dev_tasks_that_can_be_solved():
    dev = [task.task_id for task in ENV.tasks() if task.split == "dev"]
    first, _ = _tools()
    policy = Watched()
    _gate(InterfaceState(), InterfaceState((_item(first, HELP),)), 99, Marred(ENV, dev[::2]), policy)
    assert {task for task, *_ in policy.seen} == {*dev[1::2]}


def test_what_the_environment_spoiled_counts_for_nothing():
    """Every second rollout with the new cue fails in the environment: it neither hurts nor is paired."""
    first, _ = _tools()

    def judge(env, rollouts, priority):
        spoiled = [replace(r, steps=(), stop_reason="env_error") if r.sample % 2 else r for r in rollouts[:48]]
        return judge_all(env, [*spoiled, *rollouts[48:]], priority)

    gated = _gate(InterfaceState(), InterfaceState((_item(first, IDLE),)), policy=Watched(), judge=judge)
    whole = gated.decisions[0]
    assert (whole["item"], whole["decision"], whole["uplift"], whole["n"]) == (ALL, "keep", 0, 24)
