"""What each label pulls: shares of the advantage over tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from train_cases import judged

from seal.core.labels import FAILURES
from seal.train.label_shares import advantage_shares
from seal.train.reweight import TurnWeight

labels = st.lists(st.sampled_from(sorted(map(str, FAILURES)) + ["pass"]), min_size=1, max_size=4)


def rows(j, pulls):
    return [
        TurnWeight(j.rollout.rollout_id, turn, advantage, 1.0, weight, "x")
        for turn, (advantage, weight) in enumerate(pulls)
    ]


@given(labels, st.data())
def test_shares_add_up_to_one_and_know_neither_sign_nor_scale(names, data):
    j = judged("a", names)
    pulls = [(data.draw(st.floats(-2, 2)), data.draw(st.floats(0.1, 2))) for _ in names]
    found = advantage_shares(rows(j, pulls), [j])
    assert set(found) <= set(names)
    if any(advantage for advantage, _ in pulls):
        assert sum(found.values()) == pytest.approx(1, abs=1e-5)
    again = advantage_shares(rows(j, [(-3 * advantage, weight) for advantage, weight in pulls]), [j])
    assert again == pytest.approx(found, abs=2e-6)


def test_a_turn_pulls_by_its_advantage_its_weight_and_its_tokens():
    one, two = judged("a", ["pass", "argument_mismatch"], lengths=[4, 2]), judged("b", ["pass"], lengths=[5])
    found = advantage_shares([*rows(one, [(-1.0, 0.5), (-1.0, 3.0)]), *rows(two, [(1.0, 2.0)])], [one, two])
    passed, failed = 0.5 * 4 + 2.0 * 5, 3.0 * 2
    whole = passed + failed
    assert found == pytest.approx({"argument_mismatch": failed / whole, "pass": passed / whole}, abs=1e-5)


def test_masked_turns_and_no_turns_pull_nothing():
    j = judged("a", ["pass", "state_mismatch"])
    assert advantage_shares(rows(j, [(1.0, 1.0), (1.0, 0.0)]), [j]) == {"pass": 1.0}
    assert advantage_shares(rows(j, [(0.0, 1.0), (0.0, 1.0)]), [j]) == advantage_shares([], []) == {}
