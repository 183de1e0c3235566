"""Canaries through whole rounds: secrets planted in gold, messages and hidden state of the domains' tasks.

They are played, diagnosed and orders for real and evolved with every operator; nothing the interface adds holds one.
"""

from dataclasses import replace

import pytest

from seal.core.labels import DEFAULT_PRIORITY
from seal.core.seeds import RoundKey
from seal.core.types import Call, CallError, Result
from seal.diagnose.judge import judge
from seal.diagnose.profile import profile
from seal.env.compliance import ComplianceEnv
from seal.env.shop import ShopEnv
from seal.evolve.next_interface import next_interface
from seal.interface.state import InterfaceState
from seal.interface.view import View
from seal.interface.wording import RECOVERY_TEMPLATES
from seal.policy.scripted import FaultyPolicy
from seal.rollout.collect import collect
from seal.settings.evolve import EvolveParams, GateParams
from seal.settings.play import CollectParams
from seal.settings.rounds import Defaults, Round

GOLD, SAID, HIDDEN = "zqgoldzq", "zqsaidzq", "zqhiddenzq"
SECRETS = (GOLD, SAID, HIDDEN)


class Planted:
    """A domain, whose tasks hold secrets; its sessions play the tasks without them, so planted values fail."""

    def __init__(self, env):
        self._env, self._plain = env, {task.task_id: task for task in env.tasks()}
        self._tasks = [_planted(task) for task in env.tasks()]

    def __getattr__(self, name):
        return getattr(self._env, name)

    def tasks(self):
        return self._tasks

    def open(self, task):
        return self._env.open(self._plain[task.task_id])

    def open_live(self, task, seed):
        return self.open(task)


def _planted(task):
    turns = []
    for i, turn in enumerate(task.turns):
        gold = [
            Call(call.name, {name: f"{value}-{GOLD}" if i else value for name, value in call.arguments.items()})
            for call in turn.gold
        ]
        turns.append(replace(turn, message=f"{turn.message} {SAID}", gold=tuple(gold)))
    return replace(task, turns=tuple(turns), initial_state={**task.initial_state, "note": [{"why": HIDDEN}]})


def params(**evolve):
    evolved = EvolveParams(kinds=("all",), token_budget=10**5, max_new=10**4, min_support=1, **evolve)
    collected = CollectParams(tasks=12, group_size=4, evolved=2, item_dropout=0.5)
    return Round(parent="r0", env="shop", **dict(Defaults(collect=collected, evolve=evolved)))


def a_round(env, policy, state, before, round_id, depth, params):
    played = collect(env, policy, state, params.collect, RoundKey(round_id, depth, 0))
    judged = judge(env, played, DEFAULT_PRIORITY)
    found = profile(judged, {task.task_id: task.category for task in env.tasks()}, before)
    return next_interface(env, policy, state, judged, found, params, RoundKey(round_id, depth, 0)), found, played


def added_by(env, state, mode):
    """Every text the interface adds to any task: notes, hints, and what follows any error of any call."""
    for task in env.tasks():
        view, last = View(env, task, state, mode), len(task.turns) - 1
        yield from (note.text for turn in (0, last) for doc in view.docs(turn) for note in doc.notes)
        yield from (note.text for doc in view.revealed(last) for note in doc.notes)
        yield from view.hints()
        for call in {call.name: call for turn in task.turns for call in turn.gold}.values():
            for kind in RECOVERY_TEMPLATES:
                raw = f"error {kind} {' '.join(f'{name}={value}' for name, value in call.arguments.items())}"
                yield view.shown(call, Result(raw, raw, kind), last, 1)[len(raw) :]
        message = f"no such tool {GOLD} {SAID} {HIDDEN}"
        yield from (view.shown_error(CallError(kind, message), last) for kind in ("syntax", "unknown_tool"))


@pytest.mark.parametrize("kind", [ShopEnv, ComplianceEnv])
def test_planted_secrets_never_surface(kind):
    env = Planted(kind(train=12, dev=2, test=2))
    assert all(secret in repr(env.tasks()) for secret in SECRETS)
    policy, state, found, seen = FaultyPolicy(0.7), InterfaceState(), [], set()
    for depth, round_id in enumerate(("r1", "r2", "r3"), 1):
        evolved, found, played = a_round(env, policy, state, found, round_id, depth, params())
        assert any(GOLD in repr(rollout.steps) for rollout in played), "the secrets were played"
        for step in (step for rollout in played for step in rollout.steps):
            assert not [r for r in step.results if any(s in r.shown[len(r.raw) :] for s in SECRETS)]
        state = evolved.state
        assert state.active
        seen |= {item.kind for item in state.active}
        texts = [item.text for item in state.items] + [row["text"] + row["reason"] for row in evolved.changes]
        texts += [text for mode in ("full", "feedback_only", "docs_only") for text in added_by(env, state, mode)]
        assert not [text for text in texts if any(secret in text for secret in SECRETS)]
    assert {"enum", "needs", "recover", "recover_any", "guidance", "returns"} <= seen


@pytest.mark.parametrize("withheld, version", [("named", 1), ("silent", 2)])
def test_a_round_says_whether_its_interface_names_what_is_withheld(withheld, version):
    """Also where the gate takes something out: a round that exists keeps its prompts."""
    env, chosen = ShopEnv(train=8, dev=4, test=1), params(gate=GateParams(tasks=2), withheld=withheld)
    evolved, _, _ = a_round(env, FaultyPolicy(0.7), InterfaceState(), [], "r1", 1, chosen)
    assert evolved.state.active and evolved.state.version == version


@pytest.mark.parametrize("mode", ["full", "feedback_only", "docs_only"])
def test_the_gate_probes_dev_tasks_and_says_nothing_of_them(mode):
    """A round with the gate on, in every control level: decisions are rows about items, in the words of cues."""
    env = Planted(ShopEnv(train=8, dev=4, test=1))
    evolve = params().evolve.model_copy(update={"max_new": 3, "gate": GateParams(tasks=4)})
    collect = params().collect.model_copy(update={"mode": mode})
    gated = params().model_copy(update={"evolve": evolve, "collect": collect})
    evolved, _, _ = a_round(env, FaultyPolicy(0.7), InterfaceState(), [], "r1", 1, gated)
    assert len(evolved.decisions) == 1 + sum(row["action"] == "add" for row in evolved.changes)
    assert not [secret for secret in SECRETS if secret in repr((evolved.state, evolved.changes, evolved.decisions))]
