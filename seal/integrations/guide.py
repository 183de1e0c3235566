"""A learning interface beside somebody else's tools: what their docs say with it, and what follows an error."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from seal.core.errors import ParamError
from seal.core.types import Call, Json, Mode, Result, ToolDoc
from seal.env.custom.functions import kind_of, message_of
from seal.interface.feedback import Repeats, feedback
from seal.interface.render import ANY_CATEGORY, check_mode, hints, render
from seal.interface.state import InterfaceState
from seal.tools.error_kinds import error_kind

T = TypeVar("T")


class Guide:
    """The tools `docs` (bare, by the names that the cues target) under `state` in `mode`.

    It counts the calls that failed, since a repeated one is told so: make one a conversation, or `reset` it.
    Raises ParamError for a mode that there is not, for two tools of one name, and for what is no interface.
    """

    def __init__(self, docs: Sequence[ToolDoc], state: InterfaceState, mode: Mode = "full"):
        if not isinstance(state, InterfaceState):
            remedy = "read one: load_interface(path of an interface.json); InterfaceState() is the bare one"
            raise ParamError("interface", described(state), remedy)
        self._bare, self._state, self._mode = tuple(docs), state, check_mode(mode)
        self.docs = by_name(render(docs, state, mode), [doc.name for doc in docs])
        self.reset()

    def hints(self, category: str = ANY_CATEGORY) -> tuple[str, ...]:
        """Lines for the system prompt: those of every category, and those of this one."""
        return hints(category, self._state, self._mode)

    def after(self, name: str, arguments: Mapping[str, Json], raw: str, kind: str = "") -> str:
        """What the model reads of a result: `raw`, and after an error what the interface knows of it.

        `kind`: one of seal.core.types.ERROR_KINDS; where it is "", the text itself says whether it is an error.
        """
        kind = kind or error_kind(raw)
        if not kind:
            return raw
        call = Call(name, arguments)
        repeats = self._repeats.failed(call)
        return feedback(call, Result(raw, raw, kind), self._bare, self._state, self._mode, repeats)

    def after_exception(self, name: str, arguments: Mapping[str, Json], error: Exception) -> str:
        """The same for a tool that raised: its words, and what follows."""
        return self.after(name, arguments, message_of(error), kind_of_exception(error))

    def reset(self) -> None:
        """A new conversation: nothing has failed yet."""
        self._repeats = Repeats()


def described(value: object) -> str:
    """A value that is not what was wanted, in few words."""
    text = repr(value)
    return f"{text if len(text) <= 80 else text[:77] + '...'} ({type(value).__name__})"


def checked_tools(tools: Iterable[T], kind: type, remedy: str) -> list[T]:
    """The tools as a list. Raises ParamError for one that is no `kind`, and for what is no list of tools."""
    if isinstance(tools, kind) or not isinstance(tools, Iterable):
        raise ParamError("tools", described(tools), "give a list of tools")
    tools = list(tools)
    for tool in tools:
        if not isinstance(tool, kind):
            raise ParamError("tool", described(tool), remedy)
    return tools


def by_name(tools: Iterable[T], names: Sequence[str]) -> dict[str, T]:
    """Name -> tool. Raises ParamError for two of one name: cues and a model's calls find a tool by its name."""
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise ParamError("tools", f"two are named {twice[0]}", "rename one of them")
    return dict(zip(names, tools, strict=True))


def kind_of_exception(error: Exception) -> str:
    """The error kind of what a tool raised; arguments that pydantic refuses are told apart by its error types."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return kind_of(error)
    kind = error.errors()[0]["type"]
    if kind in ("missing", "missing_argument"):
        return "missing_argument"
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return "unexpected_argument"
    return "wrong_type" if kind.endswith(("_type", "_parsing")) else "invalid_value"
