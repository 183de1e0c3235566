"""Chat codec for transformers tokenizers: ChatML or Llama-3 markers, compact tool docs, JSON calls in <tool_call> tags.

Every segment is tokenised by itself and its markers are placed by id, so no id ever changes afterwards, and no text of
a tool or a user can pose as a marker. Scores under these docs are "compact": not comparable with those on full docs.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from seal.core.errors import ParamError
from seal.core.types import Param, ToolDoc

CUT = " ... [cut] ... "
INTRO = (
    "You serve the user by calling tools. A step is one or more calls, nothing else:\n"
    '<tool_call>\n{"name": "tool", "arguments": {"parameter": "value"}}\n</tool_call>\n'
    "You then read the results and may call again. When the request is done, or no tool fits, answer without a call.\n"
    "Tools (? optional, text unless a type is given):"
)
_SHORT = {"integer": "int", "boolean": "bool", "object": "dict"}
_SHORT |= dict.fromkeys(("number", "float"), "num") | dict.fromkeys(("array", "tuple"), "list")


@dataclass(frozen=True, slots=True)
class Markers:
    """How a template writes one message: `{open}role{named}content{close}`, `between` before each but the first."""

    start: str
    open: str
    named: str
    close: str
    between: str


CHATML = Markers("", "<|im_start|>", "\n", "<|im_end|>", "\n")
LLAMA3 = Markers("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>", "")


class ChatCodec:
    """Codec over a fast transformers tokenizer. Raises ParamError when the tokenizer knows no supported markers.

    Args: `max_result_tokens` cuts the middle out of a longer tool result (the text says so); `max_doc_words` is the
    length of a tool's description.
    """

    format = "qwen_xml"

    def __init__(self, tokenizer, max_result_tokens: int = 96, max_doc_words: int = 8):
        from tokenizers import Tokenizer

        self.tokenizer = tokenizer
        self.max_result_tokens, self.max_doc_words = max_result_tokens, max_doc_words
        known = tokenizer.get_vocab()
        self.markers = next((m for m in (CHATML, LLAMA3) if m.open in known and m.close in known), None)
        if self.markers is None:
            remedy = "use a model with ChatML or Llama-3 chat markers"
            raise ParamError("chat tokenizer", tokenizer.name_or_path, remedy)
        m = self.markers
        markers = [m.start, m.open, m.named.strip(), m.close]
        self._special = {word: known[word] for word in markers if word in known}
        self._split = re.compile(f"({'|'.join(map(re.escape, self._special))})")
        self._plain = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        self._plain.encode_special_tokens = True  # what users and tools say holds no markers, whatever it looks like
        self._plain.no_truncation()
        self._plain.no_padding()
        self.eos_id = known[m.close]
        self.pad_id = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else self.eos_id
        self.end_ids = tuple(sorted({self.eos_id, tokenizer.eos_token_id} - {None}))

    def prompt(self, docs: Sequence[ToolDoc], hints: Sequence[str]) -> list[int]:
        text = system_message(docs, hints, self.max_doc_words)
        return [*self._marked(self.markers.start), *self._message("system", text, first=True)]

    def user(self, message: str, revealed: Sequence[ToolDoc]) -> list[int]:
        return [*self._message("user", user_message(message, revealed, self.max_doc_words)), *self._answer()]

    def results(self, shown: Sequence[str]) -> list[int]:
        return [*self._message("user", result_message([self.cut(text) for text in shown])), *self._answer()]

    def decode(self, ids: Sequence[int]) -> str:
        kept = [i for i in ids if i not in self.end_ids]
        return self.tokenizer.decode(kept, skip_special_tokens=False, clean_up_tokenization_spaces=False)

    def encode_action(self, text: str) -> list[int]:
        return [*self.encode(text), self.eos_id]

    def count(self, text: str) -> int:
        return len(self.encode(text))

    def encode(self, text: str) -> list[int]:
        """Ids of plain text; nothing in it becomes a marker."""
        return self._plain.encode(text, add_special_tokens=False).ids

    def cut(self, text: str) -> str:
        """`text` without its middle when it is longer than `max_result_tokens`: recovery texts stand at the end."""
        encoding = self._plain.encode(text, add_special_tokens=False)
        if len(encoding.ids) <= self.max_result_tokens:
            return text
        tail = self.max_result_tokens // 3
        head = self.max_result_tokens - tail
        starts = text[: encoding.offsets[head][0]]
        return starts + CUT + (text[encoding.offsets[-tail][0] :] if tail else "")

    def _marked(self, text: str) -> list[int]:
        """Ids of our own marker text, where markers are markers."""
        words = filter(None, self._split.split(text))
        return [i for word in words for i in ([self._special[word]] if word in self._special else self.encode(word))]

    def _message(self, role: str, content: str, first: bool = False) -> list[int]:
        m = self.markers
        opening = f"{'' if first else m.between}{m.open}{role}{m.named}"
        return [*self._marked(opening), *self.encode(content), *self._marked(m.close)]

    def _answer(self) -> list[int]:
        m = self.markers
        return self._marked(f"{m.between}{m.open}assistant{m.named}")


def system_message(docs: Sequence[ToolDoc], hints: Sequence[str], max_doc_words: int) -> str:
    """The system message: how to call, the tools, hints."""
    lines = [INTRO, *(describe(doc, max_doc_words) for doc in docs)]
    return "\n".join([*lines, "Hints:", *(f"- {hint}" for hint in hints)] if hints else lines)


def describe(doc: ToolDoc, max_doc_words: int) -> str:
    """One tool in one line: signature, what it does in a few words, the interface's notes in brackets."""
    notes = {name: "".join(f" [{n.text}]" for n in doc.notes if n.param == name) for name in _places(doc)}
    params = ", ".join(_signature(param) + notes[param.name] for param in doc.params)
    return f"{doc.name}({params}) {gist(doc.description, max_doc_words)}{notes['']}".rstrip()


def user_message(message: str, revealed: Sequence[ToolDoc], max_doc_words: int) -> str:
    """A user's message, behind the tools it reveals."""
    new = ["New tools:", *(describe(doc, max_doc_words) for doc in revealed)] if revealed else []
    return "\n".join([*new, message] if message or not new else new)


def result_message(shown: Sequence[str]) -> str:
    """Tool results as a message."""
    return "\n".join(f"<tool_response>\n{text}\n</tool_response>" for text in shown)


def _places(doc: ToolDoc) -> tuple[str, ...]:
    return ("", *(param.name for param in doc.params))


def _signature(param: Param) -> str:
    """`name`, `name?`, `name: int`, `name: a|b`, `name?: bool=false`."""
    kind = _SHORT.get(param.type, "" if param.type == "string" else param.type)
    values = "|".join(value if isinstance(value, str) else json.dumps(value) for value in param.enum)
    text = f"{param.name}{'' if param.required else '?'}"
    text += f": {values or kind}" if values or kind else ""
    return text if param.required or param.default is None else f"{text}={json.dumps(param.default)}"


def gist(description: str, max_words: int) -> str:
    """The first words of what a tool does, without the preamble that tells what the tools around it are for."""
    own = description.rpartition("Tool description:")[2].strip()
    words = re.split(r"(?<=[.;:])\s", own, maxsplit=1)[0].rstrip(".;:").split()
    return " ".join(words[:max_words])
