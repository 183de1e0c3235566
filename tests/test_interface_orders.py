"""Order of operations from refusals: what counts as evidence, what counts against, and what is never read."""

from hypothesis import given
from hypothesis import strategies as st

from seal.core.types import Call, Result, Rollout, Step
from seal.evolve.orders import executions_of, find_orders

REFUSED = [("refund", "precondition"), ("verify", ""), ("refund", "")]


def test_refused_until_is_mined_with_its_counts():
    (found,) = find_orders([REFUSED] * 3)
    assert (found.tool, found.prerequisite, found.error_kind) == ("refund", "verify", "precondition")
    assert (found.support, found.against) == (3, 0) and 0.4 < found.confidence < 1


def test_one_flip_is_not_enough():
    assert find_orders([REFUSED]) == []


def test_a_success_without_the_other_tool_counts_against():
    assert find_orders([REFUSED] * 3 + [[("refund", "")]] * 6) == []


def test_only_refusals_count():
    assert find_orders([[("refund", "invalid_value"), ("verify", ""), ("refund", "")]] * 5) == []


def test_bystanders_are_told_apart_by_the_times_they_were_absent():
    noisy = [("refund", "precondition"), ("find", ""), ("verify", ""), ("refund", "")]
    found = find_orders([noisy] * 2 + [REFUSED] * 4)
    assert [m.prerequisite for m in found] == ["verify"]


def test_a_permission_keeps_its_kind():
    found = find_orders([[("discount", "permission"), ("approve", ""), ("discount", "")]] * 3)
    assert [m.error_kind for m in found] == ["permission"]


def test_a_rival_needs_half_the_support_of_the_best():
    """`find` was once more often there than not; of 7 flips of the best it has 3, then 4."""
    both = [("refund", "precondition"), ("find", ""), ("verify", ""), ("refund", "")]
    for times, kept in ((3, ["verify"]), (4, ["verify", "find"])):
        found = find_orders([both] * times + [REFUSED] * (7 - times), min_confidence=0.0)
        assert [m.prerequisite for m in found] == kept


def test_executions_are_read_call_by_call():
    steps = (
        Step(0, 0, "a", (Call("refund", {"order": "1"}),), (), (Result("error refused", "x", "precondition"),)),
        Step(1, 0, "b", (Call("verify", {}), Call("refund", {})), (), (Result("ok", "ok"), Result("ok", "ok"))),
    )
    rollout = Rollout("id", "t", 0, 0, "off", "p", "bare", steps, "finished")
    assert executions_of(rollout) == REFUSED


EXECUTIONS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from(["", "precondition", "permission", "not_found"])), max_size=12
)


@given(st.lists(EXECUTIONS, max_size=6))
def test_mining_is_blind_to_the_order_of_rollouts_and_never_mines_itself(executions):
    found = find_orders(executions, min_support=1, min_confidence=0.0)
    assert found == find_orders(executions[::-1], min_support=1, min_confidence=0.0)
    assert all(m.tool != m.prerequisite and m.support >= 1 and 0 <= m.confidence < 1 for m in found)


def test_orders_of_real_bfcl_tools_are_mined():
    """Gold play of training tasks, each turn's last call tried first: what the car wants before it starts."""
    from seal.env import load_env

    env, played = load_env("bfcl"), []
    tasks = [task for task in env.tasks() if task.split == "train" and "startEngine" in task.toolset]
    for task in tasks[:40]:
        session, calls = env.open(task), []
        for gold in (turn.gold for turn in task.turns if turn.gold):
            calls += [(call.name, session.call(call).error_kind) for call in (gold[-1], *gold)]
        played.append(calls)
    found = {m.prerequisite: m for m in find_orders(played) if m.tool == "startEngine"}
    assert set(found) == {"pressBrakePedal", "lockDoors"}
    assert found["pressBrakePedal"].support >= 10 and found["pressBrakePedal"].against == 0
