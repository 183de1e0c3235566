"""The loop of a round's training: rows, curve, resume, determinism. Hand-made groups stand in for play."""

import random
from dataclasses import replace

import pytest
from train_cases import group, judged, tiny_policy

from seal.core.errors import ArtifactError, ParamError
from seal.core.params import CollectParams, TrainParams
from seal.train import resume
from seal.train.judged import Judged
from seal.train.loop import CURVE, Loop, pair, train_round
from seal.train.reweight import Factors
from seal.train.settings import OptimSettings

torch = pytest.importorskip("torch")


class Killed(Exception):
    """Stands for kill -9: nothing of the process survives but its files."""


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)


COLLECTED = [*group("a", 2, 2, ("full", "off")), *group("b", 0, 4)]


def fresh(step):
    """Rollouts that depend on the step alone, as those of a fixed policy would."""
    return [*group(f"s{step}", 1 + step % 2, 3, ("full", "off")), *group(f"z{step}", 4, 0)]


def run(params, resume_dir=None, stop_after=None, policy=None):
    policy = policy or tiny_policy()
    modes = []

    def play(step):
        modes.append(policy.model.training)
        return fresh(step)

    def progress(row):
        if row["step"] == stop_after:
            raise Killed

    loop = Loop(COLLECTED, play, params, "r1", on_progress=progress)
    settings = OptimSettings(params.steps, 8, lr=1e-2, minibatches=2, num_iterations=params.num_iterations, seed=7)
    loop.run(policy, settings, resume_dir)
    return policy.model, loop.result


def same_weights(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


ALGORITHMS = [pytest.param("grpo", marks=pytest.mark.slow), "sft"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_rows_and_curve(algorithm):
    model, result = run(TrainParams(algorithm=algorithm, steps=3))
    assert not same_weights(model, tiny_policy().model) and not model.training
    assert [row["step"] for row in result.curve] == [0, 1, 2] and all(list(row) == CURVE for row in result.curve)
    assert [j.rollout.rollout_id for j in result.fresh] == [j.rollout.rollout_id for s in (1, 2) for j in fresh(s)]
    first = result.curve[0]
    assert (first["mixed_groups"], first["all_fail_groups"], first["all_pass_groups"]) == (1, 1, 0)
    assert first["success_bare"] == 1 / 6 and first["success_evolved"] == 1 / 2  # usable, by mode
    assert first["tokens"] == sum(sum(j.rollout.tokens.loss_mask) for j in COLLECTED)
    assert {(row["train_step"], row["phase"]) for row in result.weights} == {(0, "collect"), (1, "train"), (2, "train")}
    turns = {(row["train_step"], row["rollout_id"], row["turn"]) for row in result.weights}
    assert len(turns) == len(result.weights) == 2 * (8 + 9 + 8)
    assert result.factors.updates == 3 and result.factors.factor["argument_mismatch"] > 1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("stop_after", [1, 2])
def test_a_killed_run_goes_on_to_the_same_bytes(algorithm, stop_after, tmp_path):
    params = TrainParams(algorithm=algorithm, steps=3)
    model, whole = run(params)
    folder = tmp_path / "state"
    with pytest.raises(Killed):  # dies before step `stop_after` is recorded, so that step is trained again
        run(params, folder, stop_after)
    assert (folder / "state.pt").exists()
    again, result = run(params, folder)
    assert same_weights(model, again) and not folder.exists()
    assert (result.weights, result.curve, result.factors) == (whole.weights, whole.curve, whole.factors)
    assert result.fresh == whole.fresh


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_run_killed_after_its_last_step_only_reads_its_state(algorithm, tmp_path, monkeypatch):
    params = TrainParams(algorithm=algorithm, steps=2)
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)
    model, whole = run(params, tmp_path)
    again, result = run(params, tmp_path)
    assert same_weights(model, again) and result.curve == whole.curve


def test_judged_rollouts_survive_json():
    rollout = judged("a", ["pass", "argument_mismatch"], mode="full", errors=["parse", "not_found"], recovery_from=1)
    import json

    assert resume.of_json(Judged, json.loads(resume.to_json(rollout))) == rollout


def test_sft_imitates_successes_and_recovered_turns_only():
    from seal.train.reweight import WeightParams
    from seal.train.sft import demonstrations

    recovered = judged("r", ["pass", "argument_mismatch"], errors=["not_found", ""])
    failed, passed = judged("f", ["pass", "argument_mismatch"]), judged("p", ["pass", "correct_abstention"])
    batch = demonstrations([recovered, failed, passed], WeightParams(), Factors())
    assert [row.rollout_id for row in batch.rows] == ["r", "p"]
    reasons = {(row.rollout_id, row.turn): (row.reason, row.weight > 0) for row in batch.weights}
    assert reasons["r", 0] == ("recovered", True) and reasons["r", 1] == ("failed", False)
    assert reasons["p", 1] == ("abstained", True)
    assert all(a >= 0 for row in batch.rows for a in row.advantages)
    assert sum(a for row in batch.rows for a in row.advantages) == pytest.approx(batch.n_tokens)


def test_sft_makes_what_it_imitates_likelier():
    from seal.train.plain import token_logprobs
    from seal.train.reweight import WeightParams
    from seal.train.sft import demonstrations

    batch = demonstrations([j for j in COLLECTED if j.success], WeightParams(), Factors())
    model, result = run(TrainParams(algorithm="sft", steps=1, num_iterations=5))

    def likelihood(model):
        with torch.no_grad():
            logprobs, mask, _ = token_logprobs(model, batch.rows)
        return (logprobs * mask).sum().item()

    assert likelihood(model) > likelihood(tiny_policy().model)


def test_rows_of_other_lengths_do_not_change_a_rows_logprobs():
    from seal.train.plain import token_logprobs
    from seal.train.reweight import WeightParams
    from seal.train.sft import demonstrations

    rows = demonstrations([j for j in COLLECTED if j.success], WeightParams(), Factors()).rows
    model = tiny_policy().model
    together = token_logprobs(model, rows)[0]
    for i, row in enumerate(rows):
        n, width = len(row.completion_ids), together.shape[1]
        start = len(row.prompt_ids) - (max(len(r.prompt_ids) + len(r.completion_ids) for r in rows) - width)
        assert torch.allclose(together[i, start : start + n], token_logprobs(model, [row])[0][0], atol=1e-5)


def test_no_training_leaves_the_policy_alone():
    policy = tiny_policy()
    for params in (TrainParams(algorithm="none"), TrainParams(steps=0)):
        state = Factors({"pass": 1.0}, 3)
        result = train_round(policy, None, COLLECTED, None, CollectParams(), params, (), "r1", 1, 0, state)
        assert result.factors == state and not result.curve
    assert same_weights(policy.model, tiny_policy().model)


def test_an_unknown_algorithm_and_a_missing_verdict_say_what_to_do():
    with pytest.raises(ParamError, match="one of grpo, sft, none"):
        run(replace(TrainParams(), algorithm="ppo"))
    rollouts = [j.rollout for j in COLLECTED]
    with pytest.raises(ArtifactError, match="verify stage"):
        pair(rollouts, {}, {}, {})


def test_pairing_gives_back_what_was_taken_apart():
    ids = [j.rollout.rollout_id for j in COLLECTED]
    rollouts = [j.rollout for j in COLLECTED]
    verdicts = dict(zip(ids, (j.verdicts for j in COLLECTED), strict=True))
    diagnoses = dict(zip(ids, (j.diagnoses for j in COLLECTED), strict=True))
    outcomes = dict(zip(ids, ((j.success, j.progress) for j in COLLECTED), strict=True))
    random.Random(0).shuffle(rollouts)
    paired = pair(rollouts, verdicts, diagnoses, outcomes)
    assert sorted(paired, key=lambda j: j.rollout.rollout_id) == sorted(COLLECTED, key=lambda j: j.rollout.rollout_id)
