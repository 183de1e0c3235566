"""The loop of a round's training: rows, curve, resume, determinism. Hand-made groups stand in for play."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from train_cases import group, hand_made, judged, tiny_policy

from seal.core.errors import ArtifactError, ParamError
from seal.core.judged import Judged
from seal.core.seeds import RoundKey
from seal.settings.play import CollectParams
from seal.settings.train import TrainParams
from seal.store.files import forget
from seal.store.judged import judged_of
from seal.store.tables import write_table
from seal.train import resume
from seal.train.curve import CURVE
from seal.train.loop import Carried, train_round
from seal.train.on_policy import OnPolicy, evolved_per_group
from seal.train.optimise import UpdatePlan
from seal.train.replay import replay_of, rows_of_replay, sampled
from seal.train.reweight import Factors

torch = pytest.importorskip("torch")


class Killed(Exception):
    """Stands for kill -9: nothing of the process survives but its files."""


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)


COLLECTED = [*group("a", 2, 2, ("full", "off")), *group("b", 0, 4)]
PLAY = OnPolicy(None, None, CollectParams(), (), RoundKey("r1", 1, 0))


def rollouts(policy, step, others_than=(), n=0):
    """Rollouts that depend on the step alone, as those of a fixed policy would."""
    return [*group(f"s{step}", 1 + step % 2, 3, ("full", "off")), *group(f"z{step}", 4, 0)]


def run(params, resume_dir=None, stop_after=None, make=rollouts, before=Carried()):
    policy, reported = tiny_policy(), []

    def progress(row):
        reported.append(row["step"])
        if row["step"] == stop_after:
            raise Killed

    params = params.model_copy(update={"lr": 1e-2})
    result = train_round(policy, COLLECTED, hand_made(make), params, before, resume_dir, progress)
    assert reported == list(range(params.steps))  # of a run that goes on, too: a bar shows all
    return policy.model, result


def same_weights(one, other):
    return all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))


ALGORITHMS = [pytest.param("grpo", marks=pytest.mark.slow), "sft", "dpo"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_rows_and_curve(algorithm):
    model, result = run(TrainParams(algorithm=algorithm, steps=3))
    assert not same_weights(model, tiny_policy().model) and not model.training
    assert [row["step"] for row in result.curve] == [0, 1, 2] and all(list(row) == CURVE for row in result.curve)
    later = [j.rollout.rollout_id for s in (1, 2) for j in rollouts(None, s)]
    assert [j.rollout.rollout_id for j in result.played] == later
    first = result.curve[0]
    assert (first["mixed_groups"], first["all_fail_groups"], first["all_pass_groups"]) == (1, 1, 0)
    assert first["success_bare"] == 1 / 6 and first["success_evolved"] == 1 / 2  # usable, by mode
    assert first["tokens"] == sum(sum(j.rollout.tokens.loss_mask) for j in COLLECTED)
    rows = result.weight_rows("r1")
    assert {(row["train_step"], row["phase"]) for row in rows} == {(0, "collect"), (1, "train"), (2, "train")}
    turns = {(row["train_step"], row["rollout_id"], row["turn"]) for row in rows}
    assert len(turns) == len(rows) == 2 * (8 + 9 + 8)
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
    assert same_weights(model, again)
    assert (result.weights, result.curve, result.factors) == (whole.weights, whole.curve, whole.factors)
    assert result.played == whole.played


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_run_killed_after_its_last_step_only_reads_its_state(algorithm, tmp_path):
    params = TrainParams(algorithm=algorithm, steps=2)
    model, whole = run(params, tmp_path / "state")
    known = {path: path.stat().st_mtime_ns for path in (tmp_path / "state").iterdir()}
    again, result = run(params, tmp_path / "state")
    assert same_weights(model, again) and result.curve == whole.curve and result.replay == whole.replay
    assert known == {path: path.stat().st_mtime_ns for path in (tmp_path / "state").iterdir()}
    forget(tmp_path / "state")  # the caller's, once it has written what was made
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("n", [1, 2])
def test_rows_left_by_rounds_that_imitate_are_none_of_pairs_and_are_handed_on(n):
    """An odd number of rows would fail to pair; an even one would be taken for pairs."""
    kept = run(TrainParams(algorithm="sft", steps=2))[1].replay[:n]
    params, models = TrainParams(algorithm="dpo", steps=2), []
    for left in ([], kept):
        model, result = run(params, before=Carried(replay=left))
        assert [row["replayed"] for row in result.curve] == [0, 0] and result.replay == left
        models.append(model)
    assert len(kept) == n and same_weights(*models)


def test_evolved_successes_are_replayed_in_the_steps_to_come():
    def replayed(**params):
        result = run(TrainParams(algorithm="sft", steps=3, **params))[1]
        return [row["replayed"] for row in result.curve], len(result.replay)

    assert replayed() == ([0, 1, 2], 3)  # of each step one evolved rollout of the mixed group passed
    assert replayed(replay=1) == ([0, 1, 1], 3)
    assert replayed(replay=0) == ([0, 0, 0], 0)
    assert replayed(replayed="all")[1] > 3  # bare successes too


def test_the_next_round_starts_with_what_was_kept(tmp_path):
    params = TrainParams(algorithm="sft", steps=2)
    kept = run(params)[1].replay
    write_table(tmp_path / "replay.parquet", "replay", rows_of_replay(kept, "r1"))
    assert replay_of(tmp_path / "replay.parquet") == kept
    _, result = run(params, before=Carried(replay=kept))
    assert [row["replayed"] for row in result.curve] == [len(kept), len(kept) + 1]
    assert result.replay[: len(kept)] == kept
    first, second = (sampled(list(range(99)), 9, 7, step) for step in (1, 2))
    assert first == sampled(list(range(99)), 9, 7, 1) != second and len(set(first)) == 9


@pytest.mark.parametrize("steps", [1, 3, 10])
def test_a_linear_schedule_rises_falls_and_ends(steps):
    plan = UpdatePlan(TrainParams(steps=steps, minibatches=2, num_iterations=3, schedule="linear"), 8)
    rates = [plan.rate(update) for update in range(steps * 6 + 1)]
    top = rates.index(1.0)
    assert rates[:top] == sorted(rates[:top]) and rates[top:] == sorted(rates[top:], reverse=True)
    assert rates[-1] == 0.0 and min(rates[:-1]) > 0 and top <= len(rates) // 10
    assert {UpdatePlan(TrainParams(steps=steps, schedule="constant"), 8).rate(update) for update in range(99)} == {1.0}


def test_judged_rollouts_survive_json():
    rollout = judged("a", ["pass", "argument_mismatch"], mode="full", errors=["parse", "not_found"], recovery_from=1)
    import json

    assert resume.of_json(Judged, json.loads(resume.to_json(rollout))) == rollout


def test_sft_imitates_successes_and_recovered_turns_only():
    from seal.train.sft import demonstrations

    recovered = judged("r", ["pass", "argument_mismatch"], errors=["not_found", ""])
    failed, passed = judged("f", ["pass", "argument_mismatch"]), judged("p", ["pass", "correct_abstention"])
    batch = demonstrations([recovered, failed, passed], TrainParams(), Factors())
    assert [row.rollout_id for row in batch.rows] == ["r", "p"]
    reasons = {(row.rollout_id, row.turn): (row.reason, row.weight > 0) for row in batch.weights}
    assert reasons["r", 0] == ("recovered", True) and reasons["r", 1] == ("failed", False)
    assert reasons["p", 1] == ("abstained", True)
    assert all(a >= 0 for row in batch.rows for a in row.advantages)
    assert sum(a for row in batch.rows for a in row.advantages) == pytest.approx(batch.divisor)


def test_sft_makes_what_it_imitates_likelier():
    from seal.train.descent import token_logprobs
    from seal.train.sft import demonstrations

    batch = demonstrations([j for j in COLLECTED if j.success], TrainParams(), Factors())
    model, result = run(TrainParams(algorithm="sft", steps=1, num_iterations=5))

    def likelihood(model):
        with torch.no_grad():
            logprobs, mask, _ = token_logprobs(model, batch.rows)
        return (logprobs * mask).sum().item()

    assert likelihood(model) > likelihood(tiny_policy().model)


def test_rows_of_other_lengths_do_not_change_a_rows_logprobs():
    from seal.train.descent import token_logprobs
    from seal.train.sft import demonstrations

    rows = demonstrations([j for j in COLLECTED if j.success], TrainParams(), Factors()).rows
    model = tiny_policy().model
    together = token_logprobs(model, rows)[0]
    for i, row in enumerate(rows):
        n, width = len(row.completion_ids), together.shape[1]
        start = len(row.prompt_ids) - (max(len(r.prompt_ids) + len(r.completion_ids) for r in rows) - width)
        assert torch.allclose(together[i, start : start + n], token_logprobs(model, [row])[0][0], atol=1e-5)


def test_groups_without_signal_are_replaced_counted_and_recalled(tmp_path):
    def trained(asked, stop_after=None):
        def play(policy, step, others_than=(), n=0):
            asked.append((step, n, len(others_than)))
            return group(f"m{step}", 1, 1) if n else rollouts(policy, step)

        return run(params, tmp_path / ("whole" if asked is whole else "killed"), stop_after, play)

    params = TrainParams(algorithm="sft", steps=2, zero_variance="resample")
    whole, again = [], []
    model, result = trained(whole)
    # step 0: one of two groups is all fail, and the one that replaces it is mixed; step 1 likewise
    assert whole == [(0, 1, 8), (1, 0, 0), (1, 1, 9)]
    with pytest.raises(Killed):
        trained(again, stop_after=1)
    again.clear()
    resumed, other = trained(again)
    assert again == whole[1:]  # the group that step 0 was given is recalled, not played again
    assert same_weights(model, resumed) and other == result
    curve = result.curve
    assert [row["rollouts"] for row in curve] == [10, 11] and [row["mixed_groups"] for row in curve] == [2, 2]
    assert [len(step.played) for step in result.steps] == [2, 11] and len(result.played) == 13
    phases = {(row["train_step"], row["phase"]) for row in result.weight_rows("r1")}
    assert phases == {(0, "collect"), (0, "train"), (1, "train")}


def test_replacing_ends_where_nothing_new_is_left():
    asked = []

    def play(policy, step, others_than=(), n=0):
        asked.append(n)
        return group(f"z{len(asked)}", 0, 2)

    params = TrainParams(algorithm="sft", steps=1, zero_variance="resample")
    train_round(tiny_policy(), group("a", 0, 4), hand_made(play), params)
    assert asked == [1, 1]  # twice, and no more


def test_rollouts_of_another_policy_are_refused():
    from seal.train.loop import check_player

    class Other:
        hash = "q"

    check_player(type("Own", (), {"hash": "p"}), COLLECTED)
    with pytest.raises(ArtifactError, match="played by p, and this is q"):
        check_player(Other, COLLECTED)


@pytest.mark.parametrize("algorithm", ["grpo", "sft", "dpo"])
def test_a_round_refuses_rollouts_of_its_policy_as_it_was_before(algorithm, tmp_path):
    """A real policy whose weights moved after it had played."""
    from seal.policy.nano import NanoPolicy, nano_config
    from seal.policy.nano_model import NanoForCausalLM

    policy = NanoPolicy(NanoForCausalLM(nano_config(layers=1, width=32)).eval())
    before = policy.hash
    own = [replace(j, rollout=replace(j.rollout, policy_hash=before)) for j in COLLECTED]
    with torch.no_grad():
        next(policy.model.parameters()).add_(1e-3)
    moved = {name: p.clone() for name, p in policy.model.named_parameters()}
    with pytest.raises(ArtifactError, match=f"(?s)played by {before}, and this is {policy.hash}.*collect stage"):
        train_round(policy, own, PLAY, TrainParams(algorithm=algorithm))
    assert all(torch.equal(p, moved[name]) for name, p in policy.model.named_parameters())


def test_no_training_leaves_the_policy_alone():
    policy = tiny_policy()
    for params in (TrainParams(algorithm="none"), TrainParams(steps=0)):
        state = Factors({"pass": 1.0}, 3)
        result = train_round(policy, COLLECTED, PLAY, params, Carried(state))
        assert result.factors == state and not result.curve
    assert same_weights(policy.model, tiny_policy().model)


def test_an_unknown_algorithm_and_a_missing_verdict_say_what_to_do():
    with pytest.raises(ParamError, match="one of grpo, sft, dpo, none"):
        run(TrainParams().model_copy(update={"algorithm": "ppo"}))
    rollouts = [j.rollout for j in COLLECTED]
    with pytest.raises(ArtifactError, match="verify stage"):
        judged_of(rollouts, {}, {}, {})


def test_pairing_gives_back_what_was_taken_apart():
    ids = [j.rollout.rollout_id for j in COLLECTED]
    rollouts = [j.rollout for j in COLLECTED]
    verdicts = dict(zip(ids, (j.verdicts for j in COLLECTED), strict=True))
    diagnoses = dict(zip(ids, (j.diagnoses for j in COLLECTED), strict=True))
    outcomes = dict(zip(ids, ((j.success, j.progress) for j in COLLECTED), strict=True))
    random.Random(0).shuffle(rollouts)
    paired = judged_of(rollouts, verdicts, diagnoses, outcomes)
    assert sorted(paired, key=lambda j: j.rollout.rollout_id) == sorted(COLLECTED, key=lambda j: j.rollout.rollout_id)


@given(st.integers(0, 8), st.integers(0, 4), st.integers(0, 4), st.floats(0, 1))
def test_fewer_rollouts_play_under_cues_as_the_gap_closes(evolved, cued, bare, fade):
    played = [judged(f"c{i}", ["pass"], "t", i < cued, mode="full") for i in range(4)]
    played += [judged(f"b{i}", ["pass"], "t", i < bare) for i in range(4)]
    n = evolved_per_group(evolved, played, fade)
    assert min(1, evolved) <= n <= evolved
    assert n == evolved or fade > (cued - bare) / 4
    assert n <= 1 or cued > bare or not fade
    assert evolved_per_group(evolved, played[:4], fade) == evolved  # nothing to compare with
