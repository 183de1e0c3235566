"""Training rows: which ids, which tokens, which advantage."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from train_cases import group, judged

from seal.core.errors import ArtifactError
from seal.train.batch import assemble, training_view
from seal.train.reweight import Factors, WeightParams

NONE = WeightParams("none")


def sampled(row_ids, mask):
    return [i for i, m in zip(row_ids, mask, strict=True) if m]


def test_an_evolved_rollout_is_trained_under_the_bare_prompt_but_as_collected_under_its_own():
    rollout = judged("a", ["pass", "pass"], mode="full").rollout
    t = rollout.tokens
    assert training_view(rollout, "as_collected").prompt_ids == t.prompt_ids
    for condition in ("stripped", "within_group"):
        view = training_view(rollout, condition)
        assert view.prompt_ids == t.bare_prompt_ids != t.prompt_ids
        assert sampled(view.completion_ids, view.loss_mask) == sampled(t.completion_ids, t.loss_mask)
    bare = judged("a", ["pass", "pass"]).rollout
    assert training_view(bare, "within_group").completion_ids == bare.tokens.completion_ids


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(0, 4))
def test_only_tokens_sampled_after_recovery_text_are_masked(lengths, recovery_from):
    rollout = judged("a", ["pass"] * len(lengths), mode="full", lengths=lengths, recovery_from=recovery_from).rollout
    view = training_view(rollout, "stripped")
    assert sum(view.loss_mask) == sum(lengths[:recovery_from])
    trained = [(view.turn_of_token[i], view.logprobs[i]) for i, m in enumerate(view.loss_mask) if m]
    assert trained == [(turn, -1.5) for turn, n in enumerate(lengths[:recovery_from]) for _ in range(n)]
    assert sum(training_view(rollout, "as_collected").loss_mask) == sum(lengths)


def test_a_broken_bare_form_is_an_error():
    rollout = judged("a", ["pass"], mode="full").rollout
    tokens = replace(rollout.tokens, bare_loss_mask=(0,) * len(rollout.tokens.bare_loss_mask))
    with pytest.raises(ArtifactError, match="bare tokens: a"):
        training_view(replace(rollout, tokens=tokens), "stripped")


def test_advantages_lie_on_trained_tokens_and_are_advantage_times_weight():
    batch = assemble(group("t", 2, 2), WeightParams(), Factors())
    weights = {(row.rollout_id, row.turn): row for row in batch.weights}
    for row in batch.rows:
        assert len(row.completion_ids) == len(row.loss_mask) == len(row.advantages) == len(row.logprobs)
        assert row.loss_mask[-1] == 1
        for m, turn, advantage in zip(row.loss_mask, row.turn_of_token, row.advantages, strict=True):
            w = weights[row.rollout_id, turn]
            assert advantage == (w.advantage * w.weight if m else 0.0)
    assert batch.n_tokens == sum(sum(row.loss_mask) for row in batch.rows)


@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from(["turn", "trajectory", "none"]))
def test_weights_average_one_over_trained_tokens_before_dropping(n_pass, n_fail, granularity):
    mixed = group("t", n_pass, n_fail, ("full", "off"))
    batch = assemble(mixed, WeightParams(granularity), Factors(), drop_negative=False)
    assert sum(row.tokens * row.weight for row in batch.weights) / batch.n_tokens == pytest.approx(1.0)
    dropped = assemble(mixed, WeightParams(granularity), Factors(), drop_negative=True)
    assert dropped.n_tokens == batch.n_tokens
    before = {(row.rollout_id, row.turn): row.weight for row in batch.weights}
    for row in dropped.weights:
        assert row.weight in (before[row.rollout_id, row.turn], 0.0)
        assert (row.reason == "dropped_negative") == (row.weight == 0.0)


def test_only_negative_advantages_of_evolved_rollouts_are_dropped():
    mixed = group("t", 2, 2, ("full", "off"))  # t-2 is evolved and fails
    batch = assemble(mixed, NONE, Factors())
    assert batch.dropped == 1 and {row.rollout_id for row in batch.rows} == {"t-0", "t-1", "t-3"}
    assert {row.rollout_id for row in assemble(mixed, NONE, Factors(), drop_negative="all").rows} == {"t-0", "t-1"}
    assert assemble(mixed, NONE, Factors(), drop_negative=False).dropped == 0


def test_zero_variance_groups_are_masked_or_kept_in_the_token_count():
    batch = [*group("a", 2, 2), *group("b", 0, 3), *group("c", 3, 0)]
    masked = assemble(batch, WeightParams(), Factors())
    assert {row.rollout_id[0] for row in masked.rows} == {"a"}
    assert {row.rollout_id[0] for row in masked.weights if row.reason == "zero_variance"} == {"b", "c"}
    kept = assemble(batch, WeightParams(), Factors(), zero_variance="keep")
    assert kept.n_tokens > masked.n_tokens and len(kept.rows) == 10
    assert not any(any(row.advantages) for row in kept.rows if row.rollout_id[0] != "a")


def test_faults_of_others_leave_the_baseline():
    good = group("t", 1, 2)
    broken = judged("x", ["pass", "checker_error"], "t", success=True)
    batch, alone = assemble([*good, broken], NONE, Factors()), assemble(good, NONE, Factors())
    assert batch.excluded == 1 and batch.rows == alone.rows
    assert [row.reason for row in batch.weights if row.rollout_id == "x"] == ["not_the_policy"] * 2


def test_the_share_of_masked_tokens():
    evolved = judged("a", ["pass", "pass"], mode="full", lengths=[3, 5], recovery_from=1)
    bare = judged("b", ["pass", "argument_mismatch"], lengths=[4, 4])
    assert assemble([evolved, bare], NONE, Factors()).share_masked == pytest.approx(5 / 16)
    assert assemble([evolved, bare], NONE, Factors(), "as_collected").share_masked == 0.0


def test_rollouts_without_a_sampled_token_are_no_rows():
    empty = judged("a", ["invalid_tool_call"], lengths=[0])
    batch = assemble([empty, judged("b", ["pass"])], WeightParams(), Factors())
    assert [row.rollout_id for row in batch.rows] == ["b"]
    assert assemble([], WeightParams(), Factors()).n_tokens == 0


def test_credit_by_turn_rewards_what_a_failed_rollout_served_and_leaves_out_what_follows():
    """All four fail as a whole, so by rollout there is nothing to learn."""
    rollouts = [
        judged("a", ["pass", "argument_mismatch", "state_mismatch"], mode="full"),
        judged("b", ["pass", "pass", "argument_mismatch"]),
        judged("c", ["missing_tool_call", "pass", "pass"]),
        judged("d", ["missing_tool_call", "state_mismatch", "state_mismatch"]),
    ]
    assert assemble(rollouts, NONE, Factors()).rows == ()
    batch = assemble(rollouts, WeightParams(), Factors(), credit="turn")
    up = {(row.rollout_id, row.turn): row.advantage > 0 for row in batch.weights if row.weight}
    assert up == {("a", 0): True, ("b", 0): True, ("c", 0): False, ("d", 0): False, ("b", 1): True}
    reasons = {(row.rollout_id, row.turn): row.reason for row in batch.weights}
    assert reasons["a", 0] == "pass" and reasons["c", 0] == "root_failure"
    assert reasons["a", 1] == "dropped_negative" and reasons["b", 2] == "zero_variance"
    assert reasons["c", 1] == reasons["d", 2] == "after_failure"
    for row in batch.rows:
        by_turn = {turn for turn, m in zip(row.turn_of_token, row.loss_mask, strict=True) if m}
        assert by_turn == {turn for name, turn in up if name == row.rollout_id}
