"""Held-out play for tests."""

from seal.core.labels import DEFAULT_PRIORITY
from seal.core.seeds import RoundKey
from seal.evaluate.suite import Evaluation, evaluate_policy, plan_evaluation
from seal.pipeline.phases import evaluate_start
from seal.pipeline.state import Checkpoint, RoundState


def evaluated(env, policy, interface, params, round_id="r1", mode="full") -> Evaluation:
    """What a policy does on held-out tasks under run seed 0; `mode`: how the interface shows, if there is one."""
    key = RoundKey(round_id, 1, 0)
    planned = plan_evaluation(env.tasks(), params, key, mode if interface.active else "off")
    return evaluate_policy(env, policy, interface, planned, params, DEFAULT_PRIORITY)


def started(env, policy, params, priority=DEFAULT_PRIORITY) -> RoundState:
    """The start of a line, evaluated."""
    state = RoundState(RoundKey("r0", 0, 0), env, Checkpoint(""), policy=policy, priority=priority)
    return evaluate_start(state, params)
