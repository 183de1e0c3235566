"""Tasks that end with an answer in words (BFCL V4's agentic categories): who answers, and what counts as right.

To answer is the call `respond(content)`, which is what an output without calls stands for. It ends the task, and its
raw result, which the policy never reads, says whether the answer was accepted; the verifier compares that like any
other result. What is done before the answer is judged by nothing else, as officially.
"""

import json
import re
from collections.abc import Sequence

from seal.core.types import Call, Json, Result, Rollout, Task
from seal.env.base import Environment, Session

RESPOND = "respond"
ENDED = "Error: the answer was given."
NOT_FOUND, NO_MESSAGE = "agentic:answer_not_found", "agentic:no_last_message"  # official words
_DROPPED = re.compile(r"[\,\.\/\-\_\*\^\(\)]")


def standard(text: str) -> str:
    """Lower case, without , . / - _ * ^ ( ), and ' as "."""
    return _DROPPED.sub("", text).lower().replace("'", '"')


def accepted(text: str, answers: Sequence[str]) -> bool:
    """BFCL's agentic verdict: some answer stands in the text as whole words, both in standard form.

    So any mention counts, also a denied one, and an answer that ends in a symbol ("C++") is never found.
    """
    given = standard(text)
    return any(re.search(rf"\b{re.escape(standard(answer))}\b", given) for answer in answers) and bool(text)


class AnswerSession(Session):
    """A world in which something is looked up, and the answer to a question about it. One answer is heard."""

    def __init__(self, world: Session, answers: Sequence[str]):
        self._world, self._answers = world, tuple(answers)

    def message_call(self, text: str) -> Call:
        return Call(RESPOND, {"content": text})

    def call(self, call: Call) -> Result:
        if self.stop_reason:
            return Result(ENDED, ENDED, "precondition")
        if call.name != RESPOND:
            return self._world.call(call)
        self.stop_reason = "finished"
        right = accepted(str(call.arguments.get("content", "")), self._answers)
        return Result(json.dumps({"accepted": right}), "")

    def state(self) -> dict[str, Json]:
        """Nothing: only the answer is judged."""
        return {}


class AnswerEnvironment(Environment):
    """An environment of such tasks; their `initial_state` has the right `answers`."""

    max_steps_per_turn = 21
    judges_abstention = False

    def official(self, task: Task, rollout: Rollout, turns: int) -> dict[str, Json]:
        """`{"valid", "error_type", "turn"}`: whether the last output that calls no tool holds one of the answers."""
        given = [call.arguments.get("content") for step in rollout.steps for call in step.calls if call.name == RESPOND]
        last = given[-1] if given else None
        if last and accepted(str(last), task.initial_state["answers"]):
            return {"valid": True, "error_type": None, "turn": None}
        return {"valid": False, "error_type": NOT_FOUND if last else NO_MESSAGE, "turn": 0}
