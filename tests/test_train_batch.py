"""Training rows: which ids, which tokens, which advantage."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from train_cases import group, judged

from seal.core.errors import ArtifactError
from seal.settings.train import TrainParams
from seal.train.advantage import turn_advantages
from seal.train.batch import assemble, training_view
from seal.train.on_policy import groups_without_signal
from seal.train.reweight import Factors

PARAMS = TrainParams(negative=1.0, rehearse=0.0)
NONE = PARAMS.model_copy(update={"weights": "none"})


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
    batch = assemble(group("t", 2, 2), PARAMS, Factors())
    weights = {(row.rollout_id, row.turn): row for row in batch.weights}
    for row in batch.rows:
        assert len(row.completion_ids) == len(row.loss_mask) == len(row.advantages) == len(row.logprobs)
        assert row.loss_mask[-1] == 1
        for m, turn, advantage in zip(row.loss_mask, row.turn_of_token, row.advantages, strict=True):
            w = weights[row.rollout_id, turn]
            assert advantage == (w.advantage * w.weight if m else 0.0)
    assert batch.divisor == sum(sum(row.loss_mask) for row in batch.rows)


@given(st.integers(1, 4), st.integers(1, 4), st.sampled_from(["turn", "trajectory", "none"]))
def test_weights_average_one_over_trained_tokens_before_dropping(n_pass, n_fail, granularity):
    mixed = group("t", n_pass, n_fail, ("full", "off"))
    batch = assemble(mixed, PARAMS.model_copy(update={"weights": granularity, "drop_negative": False}), Factors())
    assert sum(row.tokens * row.weight for row in batch.weights) / batch.divisor == pytest.approx(1.0)
    dropped = assemble(mixed, PARAMS.model_copy(update={"weights": granularity}), Factors())
    assert dropped.divisor == batch.divisor
    before = {(row.rollout_id, row.turn): row.weight for row in batch.weights}
    for row in dropped.weights:
        assert row.weight in (before[row.rollout_id, row.turn], 0.0)
        assert (row.reason == "dropped_negative") == (row.weight == 0.0)


def test_only_negative_advantages_of_evolved_rollouts_are_dropped():
    mixed = group("t", 2, 2, ("full", "off"))  # t-2 is evolved and fails
    batch = assemble(mixed, NONE, Factors())
    assert batch.dropped == 1 and {row.rollout_id for row in batch.rows} == {"t-0", "t-1", "t-3"}
    without = assemble(mixed, NONE.model_copy(update={"drop_negative": "all"}), Factors())
    assert {row.rollout_id for row in without.rows} == {"t-0", "t-1"}
    assert assemble(mixed, NONE.model_copy(update={"drop_negative": False}), Factors()).dropped == 0


def test_zero_variance_groups_are_masked_or_kept_in_the_token_count():
    batch = [*group("a", 2, 2), *group("b", 0, 3), *group("c", 3, 0)]
    masked = assemble(batch, PARAMS, Factors())
    assert {row.rollout_id[0] for row in masked.rows} == {"a"}
    assert {row.rollout_id[0] for row in masked.weights if row.reason == "zero_variance"} == {"b", "c"}
    kept = assemble(batch, PARAMS.model_copy(update={"zero_variance": "keep"}), Factors())
    assert kept.divisor > masked.divisor and len(kept.rows) == 10
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
    assert (
        assemble([evolved, bare], NONE.model_copy(update={"condition": "as_collected"}), Factors()).share_masked == 0.0
    )


def test_a_call_that_failed_in_a_served_turn_is_not_rewarded():
    recovered = judged("r", ["pass", "pass"], errors=["not_found", ""])
    failed = judged("f", ["pass", "argument_mismatch"], errors=["parse", "not_found"])
    batch = {row.rollout_id: row for row in assemble([recovered, failed], PARAMS, Factors()).rows}
    assert [step.turn for step in recovered.rollout.steps] == [0, 0, 1]
    assert sum(batch["r"].loss_mask) == 6 and not any(batch["r"].loss_mask[:3])
    # the turn that fails keeps all its tokens, and the one served before it those of the call that worked
    assert sum(batch["f"].loss_mask) == (3 if failed.passed[0] else 6) + 3
    assert [sum(row.loss_mask) for row in assemble([recovered, failed], NONE, Factors()).rows] == [9, 9]


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["", "not_found", "parse"])), min_size=2, max_size=4))
def test_leaving_out_a_failed_call_is_the_same_in_both_forms(turns):
    """The tokens that carry loss are the same ids, whatever prompt they are trained under."""
    labels = ["pass" if ok else "argument_mismatch" for ok, _ in turns]
    rollout = judged("a", labels, mode="full", errors=[error for _, error in turns])
    views = [training_view(rollout.rollout, how, rollout.failed_calls) for how in ("as_collected", "stripped")]
    shown, bare = ([i for i, own in zip(v.completion_ids, v.loss_mask, strict=True) if own] for v in views)
    assert shown == bare
    assert len(shown) == 3 * (len(rollout.rollout.steps) - len(rollout.failed_calls))


def test_what_is_left_of_negative_advantages():
    batch = group("t", 1, 2, modes=("full", "off", "off"))
    whole, tenth = (assemble(batch, PARAMS.model_copy(update={"negative": share}), Factors()) for share in (1.0, 0.1))
    assert whole.divisor == tenth.divisor
    for before, after in zip(whole.rows, tenth.rows, strict=True):
        for a, b in zip(before.advantages, after.advantages, strict=True):
            assert b == pytest.approx(a if a >= 0 else 0.1 * a)


def test_rehearsal_adds_evolved_successes_as_they_were_collected():
    batch = group("t", 2, 2, modes=("full", "off"))
    plain, both = (assemble(batch, PARAMS.model_copy(update={"rehearse": share}), Factors()) for share in (0.0, 0.5))
    added = both.rows[len(plain.rows) :]
    assert both.rows[: len(plain.rows)] == plain.rows and both.weights == plain.weights
    shown = {j.rollout.rollout_id: j for j in batch if not j.bare and j.success}
    assert {row.rollout_id for row in added} == set(shown)
    for row in added:
        bare = next(r for r in plain.rows if r.rollout_id == row.rollout_id)
        assert row.prompt_ids == shown[row.rollout_id].rollout.tokens.prompt_ids != bare.prompt_ids
        assert max(row.advantages) == pytest.approx(0.5 * max(bare.advantages))
    assert both.divisor == plain.divisor + sum(sum(row.loss_mask) for row in added)
    as_collected = PARAMS.model_copy(update={"condition": "as_collected"})
    collected = assemble(batch, as_collected.model_copy(update={"rehearse": 0.5}), Factors())
    assert len(collected.rows) == len(assemble(batch, as_collected, Factors()).rows)


def test_rollouts_without_a_sampled_token_are_no_rows():
    empty = judged("a", ["invalid_tool_call"], lengths=[0])
    batch = assemble([empty, judged("b", ["pass"])], PARAMS, Factors())
    assert [row.rollout_id for row in batch.rows] == ["b"]
    assert assemble([], PARAMS, Factors()).divisor == 0


def test_credit_by_turn_rewards_what_a_failed_rollout_served_and_leaves_out_what_follows():
    """All four fail as a whole, so by rollout there is nothing to learn."""
    rollouts = [
        judged("a", ["pass", "argument_mismatch", "state_mismatch"], mode="full"),
        judged("b", ["pass", "pass", "argument_mismatch"]),
        judged("c", ["missing_tool_call", "pass", "pass"]),
        judged("d", ["missing_tool_call", "state_mismatch", "state_mismatch"]),
    ]
    assert assemble(rollouts, NONE, Factors()).rows == ()
    batch = assemble(rollouts, PARAMS.model_copy(update={"credit": "turn"}), Factors())
    up = {(row.rollout_id, row.turn): row.advantage > 0 for row in batch.weights if row.weight}
    assert up == {("a", 0): True, ("b", 0): True, ("c", 0): False, ("d", 0): False, ("b", 1): True}
    reasons = {(row.rollout_id, row.turn): row.reason for row in batch.weights}
    assert reasons["a", 0] == "pass" and reasons["c", 0] == "root_failure"
    assert reasons["a", 1] == "dropped_negative" and reasons["b", 2] == "zero_variance"
    assert reasons["c", 1] == reasons["d", 2] == "after_failure"
    assert (batch.groups.mixed, batch.groups.all_fail) == (1, 0)  # told by what is compared
    for row in batch.rows:
        by_turn = {turn for turn, m in zip(row.turn_of_token, row.loss_mask, strict=True) if m}
        assert by_turn == {turn for name, turn in up if name == row.rollout_id}


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=10))
def test_a_group_counts_as_mixed_exactly_where_its_advantages_are_not_all_masked(played):
    """Rollouts of three-turn tasks as (task, turns served); what follows the first failure is wrong as well."""
    rollouts = [
        judged(f"r{i}", ["pass"] * n + ["argument_mismatch"] * (3 - n), f"t{task}")
        for i, (task, n) in enumerate(played)
    ]
    tasks = [j.rollout.task_id for j in rollouts]
    by_turn = turn_advantages([j.passed for j in rollouts], tasks)
    signal = {
        "turn": {task for task, found in zip(tasks, by_turn, strict=True) if found},
        "rollout": {t for t in tasks if len({j.success for j in rollouts if j.rollout.task_id == t}) == 2},
    }
    solved = {t for t in tasks if all(j.success for j in rollouts if j.rollout.task_id == t)}
    for credit, mixed in signal.items():
        groups = assemble(
            rollouts, NONE.model_copy(update={"credit": credit, "drop_negative": False}), Factors()
        ).groups
        assert (groups.mixed, groups.all_pass) == (len(mixed), len(solved))
        assert groups.all_fail == len(set(tasks) - mixed - solved)
        assert groups_without_signal(rollouts, credit) == len(set(tasks) - mixed)


@given(st.sampled_from(["turn", "trajectory"]), st.floats(0.1, 1))
def test_weights_average_one_over_a_steps_own_rows_whatever_is_rehearsed_or_replayed(granularity, share):
    """Those that are added bring their tokens, and the weights they have (replayed: had) among others."""
    params = PARAMS.model_copy(update={"weights": granularity, "drop_negative": False})
    batch = assemble(group("t", 2, 2, ("full", "off")), params.model_copy(update={"rehearse": share}), Factors())
    own = assemble(group("t", 2, 2, ("full", "off")), params, Factors())
    assert batch.weights == own.weights and batch.rows[: len(own.rows)] == own.rows
    assert sum(row.tokens * row.weight for row in batch.weights) / own.divisor == pytest.approx(1.0)
    old = assemble(group("u", 1, 3, ("full", "off")), params, Factors()).rows
    both = batch.with_rows(old)
    assert both.weights == own.weights and both.rows == (*batch.rows, *old)
    assert both.divisor == sum(sum(row.loss_mask) for row in both.rows)
