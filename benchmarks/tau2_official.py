"""tau2's own path, for comparison: its environment loaded anew, its evaluators on the messages of the conversation.

This is what `evaluate_simulation` computes, without importing it (its module loads litellm). It takes up to a second a
task, most of it for loading and hashing databases.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from seal.core.types import Call, Json, Task
from seal.env.tau2 import bounds
from seal.env.tau2.environments import tools_of
from seal.env.tau2.package import module
from seal.env.tau2.session import DONE, MAX_ERRORS, RESPOND
from seal.env.tau2.user import ScriptedUser, stops

NO_SUCH_TOOL = Call("no_such_tool", {})


def official_reward(task: Task, calls: Sequence[Call]) -> float:
    """The reward of a conversation with the scripted user, or solo, given as the policy's calls."""
    state = task.initial_state
    make = module(f"domains.{state['domain']}.environment").get_environment
    solo = state["user"] == "solo"
    conversation = _Conversation(make(solo_mode=solo), state, solo)
    for call in calls:
        conversation.take(call)
    if not conversation.proper:
        return 0.0
    whole = module("data_model.tasks").Task.model_validate(
        {"id": task.task_id, "user_scenario": {"instructions": state["scenario"]}}
        | {"initial_state": state["initial"], "evaluation_criteria": state["criteria"]}
    )
    return _evaluated(whole, conversation.messages, make, solo)


class _Conversation:
    """The messages of a conversation, as the official orchestrator would hold them."""

    def __init__(self, environment: Any, state: Json, solo: bool):
        initial = module("data_model.tasks").InitialState.model_validate(state["initial"] or {})
        environment.set_state(initial.initialization_data, initial.initialization_actions, [])
        self._environment, self._solo, self._over = environment, solo, False
        self._user = ScriptedUser(tuple(tools_of(state["domain"], "user_tools")))
        self._kinds = module("data_model.message")
        self.messages: list[Any] = []
        self.proper = False
        self._errors = 0

    def take(self, call: Call) -> None:
        if self._over:
            return
        if call.name == RESPOND:
            self._say(call.arguments["content"])
        elif call.name == DONE and self._solo:
            self._over = self.proper = True
        else:
            self._run("assistant", call)

    def _say(self, text: str) -> None:
        if self._solo:
            self._over = True
            return
        self.messages.append(self._kinds.AssistantMessage(role="assistant", content=text))
        answer = self._user.answer(text, partial(self._run, "user"))
        if stops(answer) and not self._over:
            self._over = self.proper = True

    def _run(self, side: str, call: Call) -> str:
        if bounds.refusal(call.name, call.arguments):
            call = NO_SUCH_TOOL  # an error result like the one it stands for
        kinds = {"assistant": self._kinds.AssistantMessage, "user": self._kinds.UserMessage}
        wanted = {
            "id": str(len(self.messages)),
            "name": call.name,
            "arguments": dict(call.arguments),
            "requestor": side,
        }
        made = self._kinds.ToolCall(**wanted)
        answer = self._environment.get_response(made)
        self.messages += [kinds[side](role=side, tool_calls=[made]), answer]
        self._errors += answer.error
        self._over |= self._errors >= MAX_ERRORS
        return answer.content


def _evaluated(task: Any, messages: Sequence[Any], make: Any, solo: bool) -> float:
    basis = {kind.value for kind in task.evaluation_criteria.reward_basis}
    reward = 1.0
    if basis & {"DB", "ENV_ASSERTION"}:
        evaluator = module("evaluator.evaluator_env").EnvironmentEvaluator
        reward *= evaluator.calculate_reward(make, task, messages, solo_mode=solo).reward
    if "ACTION" in basis:
        reward *= module("evaluator.evaluator_action").ActionEvaluator.calculate_reward(task, messages).reward
    if "COMMUNICATE" in basis:
        evaluator = module("evaluator.evaluator_communicate").CommunicateEvaluator
        reward *= evaluator.calculate_reward(task, messages).reward
    return reward
