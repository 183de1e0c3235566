"""The proof that a task can be solved: its gold program runs without an error, and alike every time."""

from seal.core.errors import ParamError
from seal.core.types import Json, Task
from seal.env.base import Environment


def check_gold(env: Environment, task: Task) -> bool:
    """Whether there ever was any public state. Raises ParamError for a gold call that fails, and for tools that do not
    give the same twice."""
    (first, has_state), (second, _) = (_run(env, task) for _ in range(2))
    for place, one, two in zip(first, first.values(), second.values(), strict=True):
        if one != two:
            remedy = "tools must be deterministic: no clock, no randomness without a seed from the state"
            raise ParamError(f"task {task.task_id}, {place}", f"{one!r}, the second time {two!r}"[:300], remedy)
    return has_state


def _run(env: Environment, task: Task) -> tuple[dict[str, Json], bool]:
    """What every gold call gives, and the state after each turn; whether it ever was not empty."""
    session, told = env.open(task), {}
    has_state = bool(session.state())
    for turn, entry in enumerate(task.turns):
        for i, call in enumerate(entry.gold):
            place = f"turn {turn}, gold call {i}"
            result = session.call(call)
            if result.error_kind:
                said = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
                value = f"{call.name}({said}): {result.raw} ({result.error_kind})"
                raise ParamError(f"task {task.task_id}, {place}", value, "mend the call, the task's state or the tool")
            told[place] = result.raw
            has_state = has_state or bool(session.state())
        told[f"state after turn {turn}"] = session.state()
    return told, has_state
