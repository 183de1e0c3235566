"""Tasks that end with an answer in words (BFCL V4's agentic categories): who answers, and what counts as right.

To answer is the call `respond(content)`, which is what an output without calls stands for. It ends the task, and its
raw result, which the policy never reads, says whether the answer was accepted; the verifier compares that like any
other result. What is done before the answer is judged by nothing else, as officially.
"""

import json
import re
from collections.abc import Sequence

from seal.core.types import Call, Json, Result
from seal.env.base import Session

RESPOND = "respond"
ENDED = "Error: the answer was given."
_DROPPED = re.compile(r"[\,\.\/\-\_\*\^\(\)]")


def standard(text: str) -> str:
    """Lower case, without , . / - _ * ^ ( ), and ' as "."""
    return _DROPPED.sub("", text).lower().replace("'", '"')


def accepted(text: str, answers: Sequence[str]) -> bool:
    """BFCL's agentic verdict: some answer stands in the text as whole words, both in standard form.

    So any mention counts, also a denied one, and an answer that ends in a symbol ("C++") is never found.
    """
    said = standard(text)
    return any(re.search(rf"\b{re.escape(standard(answer))}\b", said) for answer in answers) and bool(text)


class AnswerSession:
    """A world in which something is looked up, and the answer to a question about it. A Conversation of one answer."""

    opening = ()

    def __init__(self, world: Session, answers: Sequence[str]):
        self._world, self._answers = world, tuple(answers)
        self.over = ""

    def speech(self, text: str) -> Call:
        return Call(RESPOND, {"content": text})

    def call(self, call: Call) -> Result:
        if self.over:
            return Result(ENDED, ENDED, "precondition")
        if call.name != RESPOND:
            return self._world.call(call)
        self.over = "finished"
        right = accepted(str(call.arguments.get("content", "")), self._answers)
        return Result(json.dumps({"accepted": right}), "")

    def state(self) -> dict[str, Json]:
        """Nothing: only the answer is judged."""
        return {}
