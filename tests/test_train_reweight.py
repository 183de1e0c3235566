"""Diagnosis weights: each law of the design as a property."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from train_cases import judged

from seal.core.errors import ArtifactError, ParamError
from seal.core.labels import DEFAULT_UTILITY, FAILURES, Label
from seal.settings.train import TrainParams
from seal.settings.typed import read
from seal.train.batch import assemble
from seal.train.reweight import Factors, TurnWeight, normalised, strength, turn_weights, update_factors

FIXED = TrainParams(alpha=0.0)
failures = st.sampled_from(sorted(map(str, FAILURES)))
utilities = st.dictionaries(st.sampled_from(list(Label)), st.floats(0, 5), max_size=6)
factors = st.builds(Factors, st.dictionaries(failures, st.floats(1, 2), max_size=4))


def by_turn(j, advantage=-1.0, params=FIXED, state=Factors()):
    return {
        row.turn: row for row in turn_weights(j, advantage, dict.fromkeys(range(len(j.diagnoses)), 3), params, state)
    }


@given(failures, utilities, factors, st.floats(0, 1))
def test_the_root_failing_turn_is_never_penalised_less_than_an_innocent_one(label, utility, state, confidence):
    rows = by_turn(
        judged("a", ["pass", label, "pass"], confidence=confidence), params=TrainParams(utility=utility), state=state
    )
    assert [rows[t].reason for t in range(3)] == ["innocent", "root_failure", "innocent"]
    assert rows[1].weight >= rows[0].weight == rows[2].weight > 0


@given(failures)
def test_with_default_utilities_the_root_is_penalised_strictly_more(label):
    rows = by_turn(judged("a", ["pass", label]))
    assert rows[1].weight == DEFAULT_UTILITY[Label(label)] > rows[0].weight == 0.5


@given(failures, failures)
def test_a_consequence_counts_as_innocent_and_a_second_root_as_a_root(first, second):
    rows = by_turn(judged("a", [first, second], roots=[True, False]))
    assert (rows[1].reason, rows[1].weight) == ("consequence", 0.5)
    rows = by_turn(judged("a", [first, second], roots=[True, True]))
    assert rows[1].reason == "root_failure"


@given(utilities, factors)
def test_recoveries_and_right_abstentions_are_rewarded_at_least_as_much_as_a_pass(utility, state):
    labels, errors = ["pass", "pass", "correct_abstention"], ["", "not_found", ""]
    rows = by_turn(judged("a", labels, errors=errors), 1.0, TrainParams(utility=utility), state)
    assert [rows[t].reason for t in range(3)] == ["pass", "recovered", "abstained"]
    assert rows[1].weight >= rows[0].weight and rows[2].weight >= rows[0].weight


def test_by_default_strictly_more_and_a_parse_error_can_be_recovered_from():
    rows = by_turn(judged("a", ["pass", "pass", "correct_abstention"], errors=["", "parse", ""]), 1.0)
    assert [rows[t].weight for t in range(3)] == [1.0, 1.2, 1.8]


def test_a_spurious_call_in_a_passing_rollout_is_masked_and_in_a_failing_one_punished():
    passing = by_turn(judged("a", ["pass", "spurious_tool_call"], success=True), 1.0)
    assert (passing[1].weight, passing[1].reason, passing[0].weight) == (0.0, "spurious_in_pass", 1.0)
    assert by_turn(judged("a", ["pass", "spurious_tool_call"]))[1].weight == 2.0


@given(st.floats(0, 1))
def test_a_spurious_call_in_a_pass_is_masked_however_sure_its_label(confidence):
    rows = by_turn(judged("a", ["pass", "spurious_tool_call"], success=True, confidence=confidence), 1.0)
    assert (rows[1].weight, rows[1].reason) == (0.0, "spurious_in_pass")


@pytest.mark.parametrize("low", [0, 0.0, -1.0])
def test_no_lowest_weight_masks_the_turns_that_have_it(low):
    with pytest.raises(ParamError, match=r"(?s)train.clip\[0\].*out of range: use a value from 0.001"):
        read(TrainParams, {"clip": [low, 2]}, "train")
    params = read(TrainParams, {"clip": [0.001, 2], "normalise": False}, "train")
    rows = by_turn(judged("a", ["pass", "argument_mismatch"]), params=params)
    assert rows[0].reason == "innocent" and rows[0].weight == pytest.approx(0.001)


@given(failures, st.floats(0, 1), st.floats(0, 1))
def test_confidence_scales_towards_one(label, low, high):
    low, high = sorted((low, high))
    unsure, sure = (by_turn(judged("a", [label, "pass"], confidence=c)) for c in (low, high))
    for turn in (0, 1):
        assert abs(unsure[turn].weight - 1) <= abs(sure[turn].weight - 1) + 1e-12
    assert by_turn(judged("a", [label, "pass"], confidence=0.0))[0].weight == 1.0


def test_without_a_root_among_the_turns_nobody_is_blamed():
    rows = by_turn(judged("a", ["pass", "pass"], success=False))
    assert {(row.reason, row.weight) for row in rows.values()} == {("undiagnosed", 1.0)}


@given(st.lists(st.sampled_from(list(DEFAULT_UTILITY)), min_size=1, max_size=6), utilities)
def test_trajectory_granularity_is_the_papers_formula(labels, utility):
    params = TrainParams(weights="trajectory", utility={**DEFAULT_UTILITY, **utility}, alpha=0.0)
    mean = sum(params.utility[z] for z in labels) / len(labels)
    rows = by_turn(judged("a", [str(z) for z in labels]), params=params)
    assert all(row.weight == pytest.approx(min(max(mean, 0.5), 2.0)) for row in rows.values())


@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.7])), max_size=12))
def test_unmasked_weights_stay_positive_and_average_one_over_tokens(rows):
    got = normalised([TurnWeight("r", i, 1.0, w, w, "x", n) for i, (n, w) in enumerate(rows)], TrainParams())
    assert all((row.weight > 0) == (w > 0) for row, (_, w) in zip(got, rows, strict=True))
    tokens = sum(row.tokens for row in got if row.weight)
    if tokens:
        assert sum(row.tokens * row.weight for row in got) / tokens == pytest.approx(1.0)


def failing(n, label, task, passing=0):
    return [judged(f"{task}{i}", ["pass", label], task) for i in range(n)] + [
        judged(f"{task}p{i}", ["pass", "pass"], task) for i in range(passing)
    ]


def test_the_dynamic_factor_by_hand():
    # 24 argument mismatches in a group half solved, 8 missing calls in one never solved.
    batch = failing(24, "argument_mismatch", "a", 24) + failing(8, "missing_tool_call", "b")
    state = update_factors(Factors(), batch, TrainParams())
    assert state.factor["argument_mismatch"] == pytest.approx(1 + 0.25 * (24 / 32 * 0.5 * 24 / 32))
    assert state.factor["missing_tool_call"] == pytest.approx(1 + 0.25 * (8 / 32 * 1.0 * 8 / 32))
    assert state.updates == 1 and "pass" not in state.factor


@given(st.integers(1, 8), st.integers(0, 8), st.floats(0, 1), st.floats(0, 2), factors)
def test_factors_stay_between_one_and_one_plus_alpha_and_fade_when_solved(n, passing, ema, alpha, state):
    params = TrainParams(alpha=max(alpha, 1.0), ema=ema)
    after = update_factors(state, failing(n, "argument_mismatch", "a", passing), params)
    assert all(1 <= factor <= 1 + params.alpha + 1e-12 for factor in after.factor.values())
    solved = update_factors(after, failing(0, "", "a", 4), params)
    assert all(solved.factor[z] <= after.factor[z] for z in after.factor)


def test_stagnation_falls_as_groups_get_solved():
    levels = [
        update_factors(Factors(), failing(4, "argument_mismatch", "a", passing), TrainParams()).factor[
            "argument_mismatch"
        ]
        for passing in (0, 4, 12)
    ]
    assert levels[0] > levels[1] > levels[2] > 1


def test_consequences_faults_of_others_and_evolved_rollouts_do_not_drive_the_loop():
    bare = judged("a", ["argument_mismatch", "state_mismatch"], roots=[True, False])
    evolved = judged("b", ["missing_tool_call"], mode="full")
    broken = judged("c", ["env_error"], stop="env_error")
    assert list(update_factors(Factors(), [bare, evolved, broken], TrainParams()).factor) == ["argument_mismatch"]
    assert list(update_factors(Factors(), [evolved], TrainParams()).factor) == ["missing_tool_call"]


@given(factors)
def test_a_capped_utility_still_moves_and_the_state_survives_json(state):
    assert Factors.of_json(state.to_json()) == state
    assert strength("spurious_tool_call", FIXED, Factors({"spurious_tool_call": 1.5})) == 3.0
    assert Factors.of_json(None) == Factors()


def test_a_label_that_the_params_leave_out_has_its_default_utility():
    params = TrainParams(utility={"pass": 1.1})
    assert strength("pass", params, Factors()) == 1.1 and strength("invalid_tool_call", params, Factors()) == 2.0


def test_the_papers_weights_are_a_setting():
    """Table 6 and w = clip(sum p(z) rho(z), 0.5, 2), by hand: nothing added, nothing divided out."""
    params = TrainParams(weights="trajectory", alpha=0.0, normalise=False, negative=1.0, drop_negative=False)
    table = {"spurious_tool_call": 2.0, "correct_abstention": 1.8, "state_mismatch": 1.0, "pass": 1.0}
    assert {z: params.utility[z] for z in table} == table and params.utility["response_mismatch"] == 0.9
    rollouts = [
        judged("a", ["pass", "spurious_tool_call", "pass", "response_mismatch"], "t"),
        judged("b", ["correct_abstention", "pass"], "t"),
    ]
    batch = assemble(rollouts, params, Factors({"spurious_tool_call": 1.0}))
    weight = {row.rollout_id: row.weight for row in batch.weights}
    assert weight == {"a": pytest.approx((1 + 2 + 1 + 0.9) / 4), "b": pytest.approx(1.4)}


@given(st.lists(st.lists(st.sampled_from(list(DEFAULT_UTILITY)), min_size=1, max_size=4), min_size=2, max_size=6))
def test_laws_of_a_batch_whatever_its_labels(rollouts):
    """Of the default weights: positive or masked, mean 1 over trained tokens, bounded, the sign the outcome's."""
    made = [judged(f"r{i}", [str(z) for z in labels], "t") for i, labels in enumerate(rollouts)]
    params = TrainParams(drop_negative=False, negative=1.0, rehearse=0.0)
    batch = assemble(made, params, update_factors(Factors(), made, params))
    rows = [row for row in batch.weights if row.weight]
    success = {j.rollout.rollout_id: j.success for j in made}
    assert all(row.weight > 0 and (row.advantage > 0) == success[row.rollout_id] for row in rows)
    if rows:
        trained = sum(row.tokens for row in rows)
        assert sum(row.tokens * row.weight for row in rows) / trained == pytest.approx(1.0)
        low, high = params.clip
        spread = (1 + params.alpha) * high / low  # no turn weighs more than this times another
        assert max(row.weight for row in rows) <= spread * min(row.weight for row in rows) + 1e-9


def test_the_state_of_the_factors_is_versioned():
    """The artifact that a round leaves for the next one says which form it has, and refuses none that is empty."""
    state = update_factors(Factors(), failing(4, "argument_mismatch", "a"), TrainParams())
    stored = state.to_json()
    assert stored["version"] == 1 and stored["updates"] == 1 and list(stored["factor"]) == ["argument_mismatch"]
    with pytest.raises(ArtifactError, match="version"):
        Factors.of_json({**stored, "version": 2})
