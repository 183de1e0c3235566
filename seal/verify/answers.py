"""BFCL's official verdict on a question that is answered in words, in the words of its runner."""

from seal.core.types import Json, Rollout, Task
from seal.env.spoken_answers import RESPOND, accepted

NOT_FOUND, NO_MESSAGE = "agentic:answer_not_found", "agentic:no_last_message"


def official_answer(task: Task, rollout: Rollout) -> dict[str, Json]:
    """`{"valid", "error_type", "turn"}`: whether the last output that calls no tool holds one of the task's answers."""
    said = [call.arguments.get("content") for step in rollout.steps for call in step.calls if call.name == RESPOND]
    if not said or not said[-1]:
        return {"valid": False, "error_type": NO_MESSAGE, "turn": 0}
    if accepted(str(said[-1]), task.initial_state["answers"]):
        return {"valid": True, "error_type": None, "turn": None}
    return {"valid": False, "error_type": NOT_FOUND, "turn": 0}
