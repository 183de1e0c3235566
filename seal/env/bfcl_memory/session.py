"""One isolated memory: literal calls in, result strings out as the official executor words them."""

from seal.core.types import Call, Json, Result
from seal.env.base import Session
from seal.env.bfcl.dispatch import FAILED, called, result_of
from seal.env.bfcl_memory.backend import context_of, memory, snapshot_of, tools_of

MAX_CHARACTERS = 1_000_000  # of a memory: the official replace would let 10,000 characters grow to 10^8 and on


class MemorySession(Session):
    """One backend, remembering a snapshot."""

    def __init__(self, backend: str, snapshot: Json):
        self._backend, self._memory = backend, memory(backend, snapshot)

    def call(self, call: Call) -> Result:
        if self._backend == "rec_sum" and call.name == "memory_replace" and self._grown(call) > MAX_CHARACTERS:
            return result_of(f"{FAILED}the memory would be longer than {MAX_CHARACTERS} characters", "other")
        return called(self._memory, tools_of(self._backend), call)

    def state(self) -> dict[str, Json]:
        """The snapshot: what a later conversation starts from."""
        return snapshot_of(self._backend, self._memory)

    def context(self) -> str:
        """What stands in the system prompt of a conversation that starts now."""
        return context_of(self._memory)

    def _grown(self, call: Call) -> int:
        old, new = (str(call.arguments.get(name, "")) for name in ("old_text", "new_text"))
        text = self._memory.memory
        return len(text) + text.count(old) * len(new)
