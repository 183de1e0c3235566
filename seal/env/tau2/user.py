"""Who answers when the policy speaks: a user who does literally what it is told, one that was recorded, or none.

A user is asked with the policy's text and may act on its own side of the world (`act`) before it answers.
"""

import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from seal.core.types import Call
from seal.tools.literal import NotACall, call_of, tree_of

STOPS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")  # official words that end a conversation
STOP = STOPS[0]
GO_ON = "Yes, please. I have told you everything I know."
Act = Callable[[Call], str]  # runs a tool of the user's side, returns its result


class UserFailed(Exception):
    """The user could not answer: not the policy's fault."""


class User(Protocol):
    greeting: tuple[str, ...]  # what every agent says first, where the user waits to be greeted

    def answer(self, text: str, act: Act) -> str:
        """The user's next message; with one of STOPS in it the conversation is over. Raises UserFailed."""
        ...


@dataclass(frozen=True, slots=True)
class ScriptedUser:
    """Deterministic, without a model: runs the calls of its `tools` that the text writes out, and tells the results.

    Otherwise it says yes to a question and takes anything else for the end. It knows nothing of the gold program.
    """

    tools: Collection[str] = ()
    greeting: tuple[str, ...] = ()

    def answer(self, text: str, act: Act) -> str:
        results = [f"{call.name}: {act(call)}" for call in calls_in(text, self.tools)]
        if results:
            return "\n".join(results)
        return GO_ON if "?" in text else STOP


class RecordedUser:
    """Does and says again what it did and said in a rollout (`answers`: raw results of its `respond` calls), then
    nothing any more."""

    greeting: tuple[str, ...] = ()

    def __init__(self, answers: Sequence[str]):
        self._answers = [json.loads(answer) for answer in answers]

    def answer(self, text: str, act: Act) -> str:
        if not self._answers:
            return ""
        answer = self._answers.pop(0)
        for done in answer["acts"]:
            act(Call(done["name"], done["arguments"]))
        return answer["said"]


def calls_in(text: str, tools: Collection[str]) -> list[Call]:
    """The literal calls of `tools` that a text writes out, in order: `toggle_roaming()`, `grant(app='messaging')`."""
    calls = []
    for match in re.finditer(r"\b([a-z_]+)\([^()]*\)", text):
        if match[1] in tools:
            try:
                calls.append(call_of(tree_of(match[0]), {}))
            except NotACall:
                continue
    return calls


def stops(message: str) -> bool:
    return any(word in message for word in STOPS)


def recorded(acts: Sequence[tuple[Call, str]], message: str) -> str:
    """What a user did and said, as RecordedUser reads it."""
    done = [{"name": call.name, "arguments": dict(call.arguments), "result": result} for call, result in acts]
    return json.dumps({"acts": done, "said": message}, sort_keys=True)
