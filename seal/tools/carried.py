"""Whether a call format can carry the names of tools and of their parameters."""

from collections.abc import Iterable

from seal.core.errors import ParamError
from seal.core.types import Call, ToolDoc
from seal.tools.names import plain
from seal.tools.parse import format_calls, parse


def check_names(docs: Iterable[ToolDoc], format: str) -> None:
    """Raises ParamError for the first tool whose call, written in `format`, is not read back as it was."""
    for doc in docs:
        names = [param.name for param in doc.params]
        if all(map(plain, (doc.name, *names))):
            continue
        call = Call(doc.name, dict.fromkeys(names, "x"))
        if parse(format_calls((call,), format), format, (doc,)).calls != (call,):
            remedy = "rename it or the parameter: letters, digits and _ go everywhere, or choose another format"
            raise ParamError(f"tool name, call format {format}", f"{doc.name}({', '.join(names)})", remedy)
