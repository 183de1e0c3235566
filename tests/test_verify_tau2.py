"""The official reward of tau2: gold conversations, doing nothing, and agreement with the package's own evaluators."""

import importlib

import pytest
from tau2_cases import ARMS, CASES, COUNTS, env, mutants, task

from seal.core.errors import ParamError
from seal.core.types import Call
from seal.env.tau2.reward import SILENT, communicated, conversation_reward, database_matches, official_state, reward_of
from seal.policy.scripted import GoldPolicy, ReplayPolicy
from seal.rollout.engine import Request, play
from seal.verify.rollout import success, verify_rollout

official_reward = importlib.import_module("tau2_official").official_reward

NOTHING = {"retail": 7, "airline": 19, "telecom": 0}


def played(environment, tasks, policy):
    requests = [Request(f"{i:016x}", one, 0, i) for i, one in enumerate(tasks)]
    return list(zip(tasks, play(environment, policy, requests), strict=True))


@pytest.mark.parametrize(("domain", "user"), ARMS)
def test_gold_conversations_earn_everything(domain, user):
    environment = env(domain, user)
    passed = 0
    for one, rollout in played(environment, environment.tasks(), GoldPolicy("qwen_xml")):
        verdicts = verify_rollout(environment, one, rollout)
        assert rollout.stop_reason == "finished" and len(verdicts) == 1
        passed += success(one, verdicts, rollout)
    assert passed == COUNTS[domain] == len(environment.tasks())


@pytest.mark.parametrize(("domain", "user"), ARMS)
def test_doing_nothing(domain, user):
    rewards = [env(domain, user).do_nothing_reward(one) for one in env(domain, user).tasks()]
    assert (len(rewards), sum(rewards)) == (COUNTS[domain], NOTHING[domain])


def test_handed_case_no_op_reward():
    given = CASES["env_tau2_noop_reward"]
    one = task(given["input"]["domain"], given["input"]["task"])
    (_, rollout), *_ = played(env("airline"), [one], ReplayPolicy({}, "qwen_xml"))
    (verdict,) = verify_rollout(env("airline"), one, rollout)
    assert verdict.evidence["reward"] == given["expected"]["reward"] and verdict.valid


def test_handed_case_communicate_substring():
    given = CASES["env_tau2_communicate_substring"]
    found = [communicated([case["message"]], [case["info"]]) for case in given["input"]["cases"]]
    assert found == given["expected"]["official_met"]


def test_handed_case_bad_gold_action():
    given, expected = CASES["env_tau2_bad_gold_action"]["input"], CASES["env_tau2_bad_gold_action"]["expected"]
    one, environment = task(given["domain"], given["task"]), env(given["domain"])
    call = Call(given["action"]["name"], given["action"]["arguments"])
    assert call in one.turns[0].gold
    assert environment.open(one).call(call).raw == expected["gold_action_result"]
    assert (
        float(conversation_reward(environment, one, one.turns[0].gold).checks["DB"])
        == expected["db_check_reward_of_gold_replay"]
    )


def test_handed_case_telecom_databases():
    expected, environment = CASES["env_tau2_telecom_db_check"]["expected"], env("telecom")
    rewards = matches = 0
    for one in environment.tasks():
        session = environment.open(one)
        for call in one.turns[0].gold:
            session.call(call)
        matches += database_matches(one.initial_state, session)
        reward = reward_of(one.initial_state, session)
        rewards += reward.value == 1.0
        assert "DB" not in reward.checks and "ENV_ASSERTION" in reward.checks
    assert (rewards, matches) == (expected["reward_1"], expected["db_match"])


def test_silent_gold_conversations_fail_to_communicate():
    failed = 0
    environment = env("airline")
    for one in environment.tasks():
        silent = [call for call in one.turns[0].gold if call.name != "respond"]
        reward = conversation_reward(environment, one, [*silent, SILENT])
        assert reward.checks["DB"]
        failed += not reward.checks["COMMUNICATE"]
    assert failed == 6


def test_a_conversation_that_nobody_ended_earns_nothing():
    one = task("airline", "0")
    assert conversation_reward(env("airline"), one, [SILENT]).value == 1.0
    unfinished = conversation_reward(env("airline"), one, [])
    assert (unfinished.value, unfinished.ending) == (0.0, "") and all(unfinished.checks.values())
    broken = conversation_reward(env("airline"), one, [Call("no_such_tool", {})] * 10 + [SILENT])
    assert (broken.value, broken.ending) == (0.0, "too_many_errors")


def test_speaking_alone_earns_nothing():
    one = env("telecom", "solo").tasks()[0]
    *calls, done = one.turns[0].gold
    assert conversation_reward(env("telecom", "solo"), one, [*calls, done]).value == 1.0
    assert conversation_reward(env("telecom", "solo"), one, [*calls, SILENT, done]).ending == "agent_error"


def test_a_basis_that_takes_a_judge_is_an_error():
    one = task("airline", "0")
    criteria = {**one.initial_state["criteria"], "reward_basis": ["DB", "NL_ASSERTION"]}
    with pytest.raises(ParamError):
        reward_of({**one.initial_state, "criteria": criteria}, env("airline").open(one))


def test_the_official_end_state_is_computed_once():
    one, environment = task("retail", "0"), env("retail")
    conversation_reward(environment, one, one.turns[0].gold)
    before = official_state.cache_info()
    conversation_reward(environment, one, [SILENT])
    after = official_state.cache_info()
    assert (after.hits, after.misses) == (before.hits + 1, before.misses)


def agreement(domain, user, n, seed):
    environment, rewards = env(domain, user), []
    for one, calls in mutants(environment.tasks(), n, seed):
        rewards.append(conversation_reward(environment, one, calls).value)
        assert rewards[-1] == official_reward(one, calls), (one.task_id, calls)
    return rewards


@pytest.mark.parametrize(("domain", "user", "n"), [("telecom", "scripted", 30), ("telecom", "solo", 8)])
def test_agreement_with_the_official_evaluators(domain, user, n):
    assert set(agreement(domain, user, n, 0)) == {0.0, 1.0}


@pytest.mark.slow
@pytest.mark.parametrize(("domain", "user"), ARMS)
def test_agreement_on_many_changed_conversations(domain, user):
    n = {"retail": 20, "airline": 10, "telecom": 100}[domain]
    assert set(agreement(domain, user, n, 1)) == {0.0, 1.0}
