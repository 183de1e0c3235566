"""Scripted policies: gold passes, faults fail, texts replay, and all of it depends on the seed alone."""

import json
from collections import Counter

import pytest

from seal.core.errors import ArtifactError, ParamError
from seal.env import load_env
from seal.policy import load_policy
from seal.policy.base import Limits, Observation
from seal.policy.faults import altered, gold_script, retyped, steps_of
from seal.policy.scripted import FAULTS, FaultyPolicy, GoldPolicy, ReplayPolicy
from seal.rollout.engine import Request, play
from seal.verify.turns import verify


@pytest.fixture(scope="module", params=["shop", "compliance"])
def domain(request):
    env = load_env(request.param)
    return env, list(env.tasks())[:40]


def rollouts(env, policy, tasks):
    return play(env, policy, [Request(task.task_id, task, 0, seed) for seed, task in enumerate(tasks)])


def passed(env, tasks, played):
    return [
        r.stop_reason == "finished" and all(v.valid for v in verify(env, t, r.calls_by_turn(len(t.turns))))
        for t, r in zip(tasks, played, strict=True)
    ]


def test_gold_passes(domain):
    env, tasks = domain
    assert all(passed(env, tasks, rollouts(env, GoldPolicy(), tasks)))


def test_gold_passes_on_bfcl():
    env = load_env("bfcl")
    tasks = list(env.tasks())[::40]
    assert all(passed(env, tasks, rollouts(env, GoldPolicy("pythonic"), tasks)))


def test_faulty_without_faults_is_gold_and_with_them_fails(domain):
    env, tasks = domain
    assert all(passed(env, tasks, rollouts(env, FaultyPolicy(0.0), tasks)))
    half = Counter(passed(env, tasks, rollouts(env, FaultyPolicy(0.5), tasks)))
    always = Counter(passed(env, tasks, rollouts(env, FaultyPolicy(1.0), tasks)))
    assert 0 < half[True] < len(tasks) and always[True] < half[True]


def test_texts_depend_on_seed_and_turn_alone(domain):
    _, tasks = domain
    policy = FaultyPolicy(0.7)
    seen = [Observation(task, 0, seed, 0, 0) for seed, task in enumerate(tasks)]
    texts = [action.text for action in policy.act(seen, 1.0, Limits())]
    assert [policy.act([o], 0.0, Limits())[0].text for o in reversed(seen)] == texts[::-1]


@pytest.mark.parametrize("kind", FAULTS)
def test_every_kind_of_fault_can_be_played(domain, kind):
    env, tasks = domain
    assert len(rollouts(env, FaultyPolicy(1.0, [kind]), tasks)) == len(tasks)


def test_replay_says_what_was_stored(domain):
    env, tasks = domain
    first = rollouts(env, FaultyPolicy(0.5), tasks)
    texts = {}
    for rollout in first:
        turns = texts.setdefault(f"{rollout.task_id}/0", [])
        for step in rollout.steps:
            turns.extend([] for _ in range(step.turn + 1 - len(turns)))
            turns[step.turn].append(step.text)
    again = rollouts(env, ReplayPolicy(texts), tasks)
    assert [r.steps for r in again] == [r.steps for r in first]
    assert ReplayPolicy(texts).hash != ReplayPolicy({}).hash


def test_load_by_policy_json(tmp_path):
    file = tmp_path / "policy.json"
    for variant, cls in (("gold", GoldPolicy), ("faulty", FaultyPolicy), ("replay", ReplayPolicy)):
        file.write_text(json.dumps({"kind": "scripted", "variant": variant, "format": "pythonic"}))
        policy = load_policy(tmp_path)
        assert type(policy) is cls and policy.format == "pythonic" and policy.codec is None
        assert policy.hash.startswith(f"scripted:{variant}")


@pytest.mark.parametrize(
    "wrong",
    [{"variant": "x"}, {"format": "x"}, {"variant": "faulty", "rate": 2}, {"variant": "faulty", "faults": ["x"]}],
)
def test_a_wrong_parameter_is_named(tmp_path, wrong):
    (tmp_path / "policy.json").write_text(json.dumps({"kind": "scripted", **wrong}))
    with pytest.raises(ParamError):
        load_policy(tmp_path)


def test_a_broken_file_is_named(tmp_path):
    (tmp_path / "policy.json").write_text("{")
    with pytest.raises(ArtifactError):
        load_policy(tmp_path)


def test_gold_turns_fit_any_step_limit(domain):
    _, tasks = domain
    for task in tasks:
        for turn, user in enumerate(task.turns):
            script = gold_script(task, turn)
            assert [c for step in script for c in step] == list(user.gold)
    assert len(steps_of(list(range(34)))) <= 5


def test_mutated_values_differ():
    for value in (3, 2.5, "abc", "q", ["a", "b"]):
        assert altered(value) != value and type(altered(value)) is type(value)
        assert type(retyped(value)) is not type(value)
    assert altered(True) is None and altered("") is None
