"""Held-out play: what is played, that rounds and modes are paired, and what the metrics say."""

import json

import pytest
from evaluations import evaluated
from text_codec import ReadingPolicy

from seal.core.labels import FAILURES
from seal.core.seeds import RoundKey
from seal.core.statistics import bootstrap_mean
from seal.env import load_env
from seal.env.shop import ShopEnv
from seal.evaluate.metrics import CURVE_COLUMNS, curve_row, metrics, round_metrics
from seal.evaluate.suite import plan_evaluation
from seal.evolve.baselines import static
from seal.interface import wording
from seal.interface.state import InterfaceState
from seal.policy.scripted import FaultyPolicy, GoldPolicy
from seal.settings.play import EvaluateParams

ENV = ShopEnv(train=2, dev=2, test=4)
TOOLS = sorted({tool for task in ENV.tasks() for tool in task.toolset})
CUES = static(ENV.facts(TOOLS))


def _evaluate(policy, interface=InterfaceState(), round_id="r1", **params):
    return evaluated(ENV, policy, interface, EvaluateParams(**params), round_id)


def test_gold_solves_all_and_faults_cost():
    gold = metrics(_evaluate(GoldPolicy()), ENV.tasks())
    assert [gold[name]["mean"] for name in ("strict", "progress", "dev")] == [1.0, 1.0, 1.0] and gold["labels"] == {}
    faulty = metrics(_evaluate(FaultyPolicy(0.5)), ENV.tasks())
    assert faulty["strict"]["mean"] < 0.6 and sum(faulty["labels"].values()) > 0.2
    assert faulty["strict"]["low"] < faulty["strict"]["mean"] < faulty["strict"]["high"]
    mean = sum(e["mean"] * e["n"] for e in faulty["by_category"].values()) / faulty["strict"]["n"]
    assert mean == pytest.approx(faulty["strict"]["mean"], abs=1e-5)


def test_a_label_has_its_rate_with_an_interval_over_scenarios():
    """The rate counted by hand, the interval as the bootstrap of turns that cluster by scenario has it."""
    evaluation, by_id = _evaluate(FaultyPolicy(0.5)), {task.task_id: task for task in ENV.tasks()}
    found = metrics(evaluation, ENV.tasks())
    judged = [j for j in evaluation.judged("test", "off") if j.usable]
    turns = [(j, turn) for j in judged for turn in sorted({d.turn for d in j.diagnoses})]
    scenarios = [by_id[j.rollout.task_id].scenario_id for j, _ in turns]
    assert found["labels"].keys() == found["label_intervals"].keys() and len(found["labels"]) > 2
    for label, rate in found["labels"].items():
        shown = [
            any((d.turn, d.label) == (turn, label) and d.primary and d.root for d in j.diagnoses) for j, turn in turns
        ]
        assert rate == round(sum(shown) / len(turns), 6)
        expected = bootstrap_mean([float(one) for one in shown], scenarios)
        assert found["label_intervals"][label] == pytest.approx([expected.low, expected.high], abs=1e-6)
        assert expected.low < rate < expected.high


def test_every_mode_and_round_plays_the_same_tasks_with_the_same_seeds():
    plans = [
        plan_evaluation(ENV.tasks(), EvaluateParams(tasks=5, trials=2), RoundKey(round_id, 1, 0), "full")
        for round_id in ("r1", "r2")
    ]
    keys = [[(split, mode, r.task.task_id, r.sample, r.seed) for split, mode, _, r in plan] for plan in plans]
    assert keys[0] == keys[1]
    off, on = ([key[2:] for key in keys[0] if key[:2] == ("test", mode)] for mode in ("off", "full"))
    assert off == on and len(off) == 10
    assert {split for split, *_ in keys[0]} == {"test", "dev"}
    ids = [r.rollout_id for plan in plans for *_, r in plan]
    assert len(set(ids)) == len(ids)


def test_the_interface_is_on_only_where_it_is_measured():
    bare = _evaluate(GoldPolicy(), CUES, measure_on=False)
    assert {h.mode for h in bare.held} == {"off"}
    assert {h.judged.rollout.interface_hash for h in bare.held} == {"bare"}
    both = _evaluate(GoldPolicy(), CUES)
    assert {h.judged.rollout.interface_hash for h in both.held if h.mode == "full"} == {CUES.hash}
    found = metrics(both, ENV.tasks())
    assert found["mismatch"]["mean"] == 0.0 and found["on"]["mean"] == 1.0
    assert "on" not in metrics(_evaluate(GoldPolicy()), ENV.tasks())  # nothing to show


def test_dev_is_played_only_where_it_is_measured():
    both, alone = _evaluate(GoldPolicy()), _evaluate(GoldPolicy(), measure_dev=False)
    assert {h.split for h in both.held} == {"test", "dev"} and {h.split for h in alone.held} == {"test"}
    with_dev, without = (metrics(evaluation, ENV.tasks()) for evaluation in (both, alone))
    assert with_dev["strict"] == without["strict"] and "dev" not in without
    dev = _evaluate(GoldPolicy(), measure_dev=False, split="dev")
    assert {h.split for h in dev.held} == {"dev"}  # the split that is reported


@pytest.mark.parametrize("mode", ["full", "docs_only", "feedback_only", "off"])
def test_it_is_measured_as_the_round_showed_it(mode):
    held = evaluated(ENV, GoldPolicy(), CUES, EvaluateParams(), mode=mode)
    assert {h.mode for h in held.held} == {"off", mode}
    assert ("on" in metrics(held, ENV.tasks())) == (mode != "off")


def everything(env, tools):
    """An interface with every operator in it: notes, hints of every category, recovery for every error."""
    facts = env.facts(tools)
    cues = [cue for fact in facts if (cue := wording.note(fact))]
    cues += [cue for fact in facts if (cue := wording.recovery(fact))]
    cues += [wording.recover_any(kind) for kind in wording.RECOVERY_TEMPLATES]
    cues += [wording.guidance(label) for label in FAILURES] + [wording.call_format("words")]
    return InterfaceState(tuple(cue.item() for cue in cues))


@pytest.mark.parametrize("name", ["shop", "bfcl"])
def test_evaluation_is_byte_equal_to_one_without_any_interface(name):
    """Handed case iface_eval_untouched: prompts, user turns, observations of every bare rollout; not so with it on."""
    env = ENV if name == "shop" else load_env("bfcl")
    tools = sorted({tool for task in env.tasks() for tool in task.toolset})
    params = EvaluateParams(tasks=0 if name == "shop" else 12, context=10**6)
    policy, state = ReadingPolicy(0.9), everything(env, tools)
    shown, bare = (evaluated(env, policy, s, params) for s in (state, InterfaceState()))
    off = [j.rollout for j in shown.judged(mode="off")]
    assert off == [j.rollout for j in bare.judged()] and all(rollout.tokens.prompt_ids for rollout in off)
    errors = [r for rollout in off for step in rollout.steps for r in step.results if r.error_kind]
    assert errors and all(result.shown == result.raw for result in errors)
    on = {j.rollout.task_id: j.rollout for j in shown.judged("test", "full")}
    pairs = [(rollout, on[rollout.task_id]) for rollout in off if rollout.task_id in on]
    assert pairs and all(a.tokens.prompt_ids != b.tokens.prompt_ids for a, b in pairs)
    assert all(a.tokens.prompt_ids == b.tokens.bare_prompt_ids for a, b in pairs)


def test_metrics_of_a_round_compare_and_count():
    before, after = _evaluate(FaultyPolicy(0.5), round_id="r0"), _evaluate(GoldPolicy(), CUES)
    rows = before.rows("r0")
    found = metrics(after, ENV.tasks(), parent=rows, start=rows)
    earlier = metrics(before, ENV.tasks())["strict"]["mean"]
    assert found["gain"]["parent"]["mean"] == pytest.approx(1 - earlier, abs=1e-5)
    assert found["gain"]["parent"]["low"] > 0
    spent = {"collect": {"rollouts": 8, "tokens": 80}, "train": {"rollouts": 16, "tokens": 160, "updates": 6}}
    total = {"rollouts": 1, "tokens": 2, "updates": 3}
    whole = round_metrics(found, RoundKey("r1", 1, 0), "r0", InterfaceState(), CUES, spent, total, env="shop")
    assert whole["total"] == {"rollouts": 25, "tokens": 242, "updates": 9}
    assert whole["interface"]["added"] == len(CUES.items) and whole["interface"]["retired"] == 0
    row = curve_row(whole)
    assert tuple(row) == CURVE_COLUMNS
    assert (row["strict"], row["rollouts"], row["on_high"]) == (1.0, 25, found["on"]["high"])
    assert json.loads(json.dumps(whole)) == whole


def test_evaluation_rows_are_sorted_and_complete():
    rows = _evaluate(FaultyPolicy(0.3), trials=2).rows("r3")
    assert len(rows) == 2 * len([task for task in ENV.tasks() if task.split != "train"])
    assert {row["round"] for row in rows} == {"r3"} and all(0 <= row["progress"] <= 1 for row in rows)
    assert rows == sorted(rows, key=lambda row: (row["split"], row["mode"], row["task_id"], row["trial"]))
    assert rows == _evaluate(FaultyPolicy(0.3), trials=2).rows("r3")
