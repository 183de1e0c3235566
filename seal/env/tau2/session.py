"""One tau2 conversation in play: literal calls in, the package's own result strings out; the user is a call away.

To speak to the user is the call `respond(content)`, as in the first tau-bench; its result is what the user answers.
A session is over when the user, or in solo the policy by `done()`, ends it, or when the official orchestrator would.
"""

import copy
from collections.abc import Mapping
from typing import Any

from seal.core.types import Call, Json, Result
from seal.env.base import Session
from seal.env.tau2 import bounds
from seal.env.tau2.environments import state_of
from seal.env.tau2.package import module
from seal.env.tau2.user import User, UserFailed, recorded, stops
from seal.tools.error_kinds import error_kind

RESPOND, DONE = "respond", "done"
MAX_ERRORS = 10  # of tool calls, either side's: the official orchestrator gives up
ENDED = "Error: The conversation is over."


class Tau2Session(Session):
    """`environment`: a tau2 Environment of its own; `user`: None plays solo.

    stop_reason  "finished", or "env_error" when the user could not answer
    ending       by the official names: agent_stop, user_stop, too_many_errors, agent_error, user_error, or ""
    messages     the policy's messages to the user
    calls        `(side, call)` of everything that was called, in order; side is "assistant" or "user"
    """

    def __init__(self, environment: Any, user: User | None):
        self.environment, self._user = environment, user
        self.greeting = user.greeting if user else ()
        self.ending = ""
        self.messages: list[str] = []
        self.calls: list[tuple[str, Call]] = []
        self._errors = 0

    def message_call(self, text: str) -> Call:
        """The call that plain text stands for."""
        return Call(RESPOND, {"content": text})

    def call(self, call: Call) -> Result:
        """Run one call; every fault is a result. Of an answer of the user, `shown` is the message ("" when the user has
        ended the conversation) and `raw` all that was done and said."""
        if self.stop_reason:
            return Result(ENDED, ENDED, "precondition")
        if call.name == RESPOND:
            return self._respond(call.arguments)
        if call.name == DONE and self._user is None:
            self._end("finished", "agent_stop")
            return Result("###STOP###", "###STOP###")
        text, failed = self._run("assistant", call)
        return Result(text, text, self._kind(call, text) if failed else "")

    def state(self) -> dict[str, str]:
        """`{part/table/key: JSON}` of what differs from the domain's database, both sides."""
        return state_of(self.environment)

    def _respond(self, arguments: Mapping[str, Json]) -> Result:
        text = arguments.get("content")
        if not isinstance(text, str) or len(arguments) > 1:
            error_text = f"Error: {RESPOND} takes one text, content"
            return Result(error_text, error_text, "wrong_type" if "content" in arguments else "missing_argument")
        self.messages.append(text)
        if self._user is None:
            self._end("finished", "agent_error")
            error_text = f"Error: There is nobody to speak to; call {DONE}() when you are done."
            return Result(error_text, error_text, "precondition")
        acts: list[tuple[Call, str]] = []

        def act(call: Call) -> str:
            acts.append((call, self._run("user", call)[0]))
            return acts[-1][1]

        try:
            message = self._user.answer(text, act)
        except UserFailed as error:
            self._end("env_error", "user_error")
            return Result(f"Error: {error}", f"Error: {error}", "other")
        if stops(message):
            self._end("finished", "user_stop")
        return Result(recorded(acts, message), "" if self.stop_reason else message)

    def _run(self, side: str, call: Call) -> tuple[str, bool]:
        """The text of a result and whether it is an error."""
        self.calls.append((side, call))
        if reason := bounds.refusal(call.name, call.arguments):
            text, failed = f"Error: {reason}", True
        else:
            # what a tool keeps must not be the caller's
            wanted = {"name": call.name, "arguments": copy.deepcopy(dict(call.arguments)), "requestor": side}
            answer = self.environment.get_response(module("data_model.message").ToolCall(**wanted))
            text, failed = answer.content, answer.error
        self._errors += failed
        if self._errors >= MAX_ERRORS:
            self._end("finished", "too_many_errors")
        return text, failed

    def _kind(self, call: Call, text: str) -> str:
        sides = [self.environment.tools] + [self.environment.user_tools] * (self._user is None)
        if not any(side.has_tool(call.name) for side in sides if side is not None):
            return "unknown_tool"
        return error_kind(text) or "other"

    def _end(self, stop_reason: str, ending: str) -> None:
        self.stop_reason, self.ending = self.stop_reason or stop_reason, self.ending or ending
