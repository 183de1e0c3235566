"""What repairing a label is worth, and the priorities that follow from data."""

import random
from pathlib import Path

import pytest
from evaluations import started
from store_cases import write_tree

from seal.cli import main
from seal.core.errors import ParamError
from seal.core.judged import Judged
from seal.core.labels import DEFAULT_PRIORITY, Label
from seal.core.seeds import RoundKey
from seal.diagnose import diagnose
from seal.diagnose.label_worth import Worth, by_worth, drawn_priority, frequencies, order_by, worth
from seal.diagnose.primary_label import NAMED, parse_priority
from seal.diagnose.proof.inject import injections
from seal.env import load_env
from seal.env.shop import ShopEnv
from seal.pipeline.phases import run_round
from seal.pipeline.state import RoundState
from seal.policy.scripted import FaultyPolicy
from seal.settings.evolve import DiagnoseParams
from seal.settings.params import load_yaml, parse_params
from seal.settings.play import CollectParams, EvaluateParams
from seal.settings.rounds import Defaults, Round
from seal.settings.train import TrainParams

KINDS = {
    "unknown_tool": Label.INVALID_TOOL_CALL,
    "misspelt_argument": Label.ARGUMENT_MISMATCH,
    "wrong_code": Label.ARGUMENT_MISMATCH,
    "drop": Label.MISSING_TOOL_CALL,
    "empty": Label.MISSING_TOOL_CALL,
    "extra_call": Label.SPURIOUS_TOOL_CALL,
    "stale_referent": Label.STATE_MISMATCH,
    "skip_permission": Label.CONSTRAINT_VIOLATION,
    "repeated_failure": Label.RECOVERY_FAILURE,
}


@pytest.fixture(scope="module", params=["shop", "bfcl"])
def faults(request):
    """(environment, samples by kind): single faults that fail a turn for good."""
    env = load_env(request.param)
    tasks = [task for task in env.tasks() if not task.known_bad]
    found = {}
    for i in injections(env, random.Random(0).sample(tasks, 24)):
        if i.kind in KINDS and not i.verdicts[i.turn].valid:
            rows = tuple(diagnose(env, i.task, i.rollout, i.verdicts))
            found.setdefault(i.kind, []).append(Judged(i.rollout, i.verdicts, rows, False, 0.0))
    return env, found


def test_repairing_the_fault_that_was_made_makes_the_turn_right(faults):
    """One fault alone was made: with it repaired the rollout passes, or most of it."""
    env, found = faults
    for kind, samples in found.items():
        of_kind = worth(env, samples)[KINDS[kind]]
        failing = sum(not verdict.valid for sample in samples for verdict in sample.verdicts)
        if of_kind.turns < 5:
            continue
        assert of_kind.flips >= 0.6 * failing, (kind, of_kind, failing)


def test_worth_is_deterministic_and_counts_every_turn_with_the_label(faults):
    env, found = faults
    samples = [sample for of_kind in found.values() for sample in of_kind]
    first = worth(env, samples)
    assert first == worth(env, samples)
    assert {label: w.turns for label, w in first.items()} == dict(frequencies(samples))


def test_orders():
    found = {
        Label.STATE_MISMATCH: Worth(100, 300),
        Label.ARGUMENT_MISMATCH: Worth(100, 100),
        Label.INVALID_TOOL_CALL: Worth(1, 9),  # one turn decides little
    }
    order = by_worth(found)
    assert order[:3] == (Label.INVALID_TOOL_CALL, Label.STATE_MISMATCH, Label.ARGUMENT_MISMATCH)
    assert set(order) == set(DEFAULT_PRIORITY) and len(order) == len(DEFAULT_PRIORITY)
    assert by_worth({}) == DEFAULT_PRIORITY
    assert by_worth({Label.STATE_MISMATCH: Worth(4, 8), Label.PASS: Worth()})[0] == Label.STATE_MISMATCH


def test_named_orders(faults):
    env, found = faults
    samples = [sample for of_kind in found.values() for sample in of_kind]
    assert order_by("fixed", env, samples) == DEFAULT_PRIORITY
    seen = [frequencies(samples)[label] for label in order_by("frequency", env, samples)]
    assert seen == sorted(seen, reverse=True)
    assert order_by(["state_mismatch"], env, samples) == parse_priority(["state_mismatch"])
    assert order_by("learned", env, samples) == by_worth(worth(env, samples))
    for name in NAMED:
        assert parse_priority(name) == DEFAULT_PRIORITY
        assert set(drawn_priority(name, env, [])) == set(DEFAULT_PRIORITY)


def test_a_conversation_has_no_counterfactual():
    class Talk:
        name, live = "talk", True

    with pytest.raises(ParamError, match="frequency"):
        order_by("learned", Talk(), [])


@pytest.mark.parametrize("priority", NAMED)
def test_a_round_takes_a_named_priority(priority):
    env, policy = ShopEnv(train=4, dev=1, test=2), FaultyPolicy(0.6)
    train = TrainParams(algorithm="none", steps=0)
    evaluate = EvaluateParams(measure_on=False)
    diagnosis, collected = DiagnoseParams(priority=priority), CollectParams(tasks=4, group_size=4)
    sections = Defaults(collect=collected, diagnose=diagnosis, train=train, evaluate=evaluate)
    params = Round(parent="r0", env="shop", **dict(sections))
    start = started(env, policy, evaluate, priority).checkpoint()
    state = run_round(RoundState(RoundKey("r1", 1, 0), env, start), params)
    bare = [j for j in state.judged if j.bare]
    tasks = {task.task_id: task for task in env.tasks()}
    assert bare and state.profile
    order = order_by(priority, env, bare)
    for j in bare:
        assert list(j.diagnoses) == diagnose(env, tasks[j.rollout.task_id], j.rollout, j.verdicts, order)


def test_a_round_with_a_named_priority_is_read():
    data = load_yaml(Path(__file__).parents[1] / "params.yaml")
    data["rounds"]["r3"]["diagnose"]["priority"] = "learned"
    assert parse_params(data).rounds["r3"].diagnose.priority == "learned"
    data["rounds"]["r3"]["diagnose"]["priority"] = "best"
    with pytest.raises(ParamError, match="rounds.r3.diagnose.priority"):
        parse_params(data)


def test_sensitivity_prints_profile_and_weights_under_each_priority(tmp_path, capsys):
    assert main(["diagnose", "--sensitivity", "--env", "shop", "--root", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.count("fixed  frequency  learned") == 3 and "turn weights move" in out and "worth" in out


def test_sensitivity_reads_the_last_collected_round(tmp_path, capsys):
    root = write_tree(tmp_path)
    text = (Path(__file__).parents[1] / "params.yaml").read_text()
    (root / "params.yaml").write_text(text)
    assert main(["diagnose", "--sensitivity", "--root", str(root)]) == 0
    assert capsys.readouterr().out.startswith("r2: 36 rollouts, ")
    assert main(["diagnose", "--sensitivity", "--round", "r3", "--root", str(root)]) == 5
    assert "r1, r2" in capsys.readouterr().err
