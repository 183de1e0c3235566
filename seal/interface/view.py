"""What a policy sees of one task under one interface and mode: the only thing the rollout engine asks."""

from seal.core.types import Call, CallError, Mode, Result, Task, ToolDoc
from seal.env.base import Environment
from seal.interface import feedback, render
from seal.interface.state import InterfaceState


class View:
    """One task under `state` in `mode`, with item `dropped` left out (ids as in Item.id; "" drops none).

    In mode "off" every answer is what the environment itself says, to the byte, whatever the state holds. What names a
    tool is left out until the turn that reveals it (of a state of version 1 only where it is a sibling in the docs).
    Raises ParamError when there is no such mode.
    """

    def __init__(self, env: Environment, task: Task, state: InterfaceState, mode: Mode = "off", dropped: str = ""):
        self._env, self._task = env, task
        self.mode = render.check_mode(mode)
        self.state = state.without(dropped) if dropped else state
        self._docs: dict[int, tuple[ToolDoc, ...]] = {}
        self._states: dict[int, InterfaceState] = {}

    def docs(self, turn: int = 0) -> tuple[ToolDoc, ...]:
        """Docs of all tools that may be used at `turn`, with their notes."""
        return render.render(self._bare(turn), self._at(turn), self.mode)

    def revealed(self, turn: int) -> tuple[ToolDoc, ...]:
        """Docs of the tools that `turn` itself reveals, annotated like all others."""
        return render.render(self._env.revealed(self._task, turn), self._at(turn), self.mode, self._bare(turn))

    def hints(self) -> tuple[str, ...]:
        """Guidance of the system part: the environment's own, which the interface cannot change, then its hints."""
        return self._env.guidance(self._task) + render.hints(self._task.category, self._at(0), self.mode)

    def shown(self, call: Call, result: Result, turn: int = 0, repeats: int = 0) -> str:
        """The text the policy reads: what the environment shows, and after an error what the interface adds to it.

        `turn` keeps withheld tools unnamed; `repeats` is how often the same call failed before.
        """
        if self.mode in ("off", "docs_only") or not result.error_kind:
            return result.shown
        return feedback.feedback(call, result, self._bare(turn), self._at(turn), self.mode, repeats)

    def shown_error(self, error: CallError, turn: int = 0) -> str:
        """The text the policy reads for an output that did not parse."""
        return feedback.parse_feedback(error, self._bare(turn), self._at(turn), self.mode)

    def _bare(self, turn: int) -> tuple[ToolDoc, ...]:
        if turn not in self._docs:
            self._docs[turn] = tuple(self._env.docs(self._task, turn))
        return self._docs[turn]

    def _at(self, turn: int) -> InterfaceState:
        if self.state.version == 1:
            return self.state
        if turn not in self._states:
            withheld = [tool for tool, reveal in self._task.holdout.items() if reveal > turn]
            self._states[turn] = self.state.without_naming(withheld)
        return self._states[turn]
