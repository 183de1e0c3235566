"""The official tau2 reward of a conversation, from the package's own environments and assertions.

The reward is the product of what a task's reward_basis names: DB (both databases equal those after the official
actions), ENV_ASSERTION, ACTION, COMMUNICATE; and 0 for a conversation that did not end properly. The databases after
the official actions are computed once a task. Telecom's basis never holds DB: its official actions run without the
synchronisation that a conversation has, so right conversations differ there (`database_matches` says 43 of 114).
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from seal.core.errors import ParamError
from seal.core.types import Call, Json, Rollout, Task, Verdict
from seal.env.tau2.environments import new_environment, state_of
from seal.env.tau2.package import module
from seal.env.tau2.session import RESPOND, Tau2Session

if TYPE_CHECKING:
    from seal.env.tau2 import Tau2Env

PROPER = ("agent_stop", "user_stop")  # how a conversation may end; any other way earns nothing
IN_STATE = frozenset(("DB", "ENV_ASSERTION"))
KNOWN = IN_STATE | {"ACTION", "COMMUNICATE"}
SILENT = Call(RESPOND, {"content": "I can do nothing for you."})


@dataclass(frozen=True, slots=True)
class Reward:
    """`value` 1 or 0. `checks`: every part of the basis, passed or not. `ending`: official, see Tau2Session."""

    value: float
    ending: str
    checks: Mapping[str, bool] = field(default_factory=dict)


def rollout_reward(env: "Tau2Env", task: Task, rollout: Rollout) -> Reward:
    """The reward of a rollout. What a model said as the user is taken from it."""
    played = [pair for step in rollout.steps for pair in zip(step.calls, step.results, strict=True)]
    answers = [result.raw for call, result in played if call.name == RESPOND and not result.error_kind]
    return conversation_reward(env, task, [call for call, _ in played], answers)


def verdict_of(reward: Reward) -> Verdict:
    """`valid` is the official reward, `state_ok` its DB and ENV_ASSERTION part, `response_ok` its ACTION and
    COMMUNICATE part."""
    in_state = [passed for name, passed in reward.checks.items() if name in IN_STATE]
    in_words = [passed for name, passed in reward.checks.items() if name not in IN_STATE]
    evidence = {"reward": reward.value, "ending": reward.ending, **reward.checks}
    return Verdict(0, all(in_state), all(in_words), reward.value == 1.0, 1.0, evidence)


def conversation_reward(env: "Tau2Env", task: Task, calls: Sequence[Call], answers: Sequence[str] = ()) -> Reward:
    """The reward of a conversation given as the policy's calls, run anew. `answers`: what a model answered as the user,
    raw; scripted users answer by themselves."""
    session = env.replayed(task, answers)
    for call in calls:
        session.call(call)
    return reward_of(task.initial_state, session)


def reward_of(task: Json, session: Tau2Session) -> Reward:
    """The reward of a played session; runs the assertions on it. `task`: a tau2 task's initial_state.

    Raises ParamError for a basis that takes a judge model, as the official evaluation does.
    """
    criteria = module("data_model.tasks").EvaluationCriteria.model_validate(task["criteria"])
    basis = [kind.value for kind in criteria.reward_basis]
    if unknown := sorted(set(basis) - KNOWN):
        raise ParamError("tau2 reward_basis", unknown[0], f"only {', '.join(sorted(KNOWN))} can be computed")
    session.environment.sync_tools()
    tests = {
        "DB": lambda: database_matches(task, session),
        "ENV_ASSERTION": lambda: _assertions(session, criteria.env_assertions or []),
        "ACTION": lambda: _actions(session.calls, criteria.actions or []),
        "COMMUNICATE": lambda: communicated(session.messages, criteria.communicate_info or []),
    }
    checks = {name: test() for name, test in tests.items() if name in basis}
    return Reward(float(session.ending in PROPER and all(checks.values())), session.ending, checks)


def database_matches(task: Json, session: Tau2Session) -> bool:
    """Whether both databases of a session are as the official actions leave them."""
    return state_of(session.environment) == official_state(task["domain"], json.dumps(task))


@lru_cache(maxsize=4096)
def official_state(domain: str, task: str) -> dict[str, str]:
    """What the official actions leave (see seal.env.tau2.environments.state_of). Those that are errors change nothing.
    `task`: a tau2 task's initial_state as JSON."""
    state = json.loads(task)
    environment = new_environment(domain, state["initial"])
    for action in module("data_model.tasks").EvaluationCriteria.model_validate(state["criteria"]).actions or []:
        with suppress(Exception):  # whatever a tool raises: the official evaluator goes on as well
            environment.make_tool_call(action.name, requestor=action.requestor, **action.arguments)
    return state_of(environment)


def communicated(messages: Sequence[str], wanted: Sequence[str]) -> bool:
    """Whether every text is in some message: the official test, which takes commas from the messages only and is a
    substring's ("10" is met by "1,100", "1,100" by nothing)."""
    heard = [message.lower().replace(",", "") for message in messages]
    return all(any(text.lower() in message for message in heard) for text in wanted)


def _assertions(session: Tau2Session, assertions: Sequence) -> bool:
    return all(session.environment.run_env_assertion(one, raise_assertion_error=False) for one in assertions)


def _actions(calls: Sequence[tuple[str, Call]], actions: Sequence) -> bool:
    """Every official action has a call like it, by the package's own comparison (an action without compare_args is also
    met by a call with fewer arguments)."""
    tool_call = module("data_model.message").ToolCall
    made = [tool_call(name=call.name, arguments=dict(call.arguments), requestor=side) for side, call in calls]
    return all(any(action.compare_with_tool_call(call) for call in made) for action in actions)
