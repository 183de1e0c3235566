"""BFCL V4 memory: 155 questions about what a user said in earlier conversations, for each memory backend.

What is asked was said in prerequisite conversations, each with a context of its own; only the memory goes from one to
the next, and on to the questions. Two honest ways to play it:

- `tasks()`: the questions over a memory that the scripted note-taker wrote, the same for every policy. They measure
  reading a memory, cost one turn each, and can be trained on.
- `conversation`, `after`, `question`: the policy writes the memory itself, conversation by conversation, and is asked
  over what it wrote, as the official harness does it. benchmarks/memory_harness.py plays that.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

from seal.core.errors import ParamError
from seal.core.types import Call, Fact, Json, Task, ToolDoc
from seal.env.bfcl.data import entry_facts
from seal.env.bfcl.package import PACKAGE, lines
from seal.env.bfcl_memory import data
from seal.env.bfcl_memory.session import BACKENDS, MemorySession
from seal.env.spoken_answers import AnswerEnvironment, AnswerSession

SCENARIOS = tuple(data.SPLITS)


class BfclMemoryEnv(AnswerEnvironment):
    """The Environment over the installed bfcl_eval package. `backends`: which of kv, rec_sum, vector.

    Raises DependencyError where the package, or what a backend needs, is missing.
    """

    name = "bfcl_memory"

    def __init__(self, backends: Sequence[str] = ("kv", "rec_sum")):
        if not backends or set(backends) - set(BACKENDS):
            raise ParamError("envs.bfcl_memory.backends", list(backends), f"some of: {', '.join(BACKENDS)}")
        self.version = PACKAGE.version()
        self.backends = tuple(dict.fromkeys(backends))
        self._scripted: dict[tuple[str, str], Json] = {}
        self._docs = {name: {doc.name: doc for doc in data.docs_of(name)} for name in self.backends}

    @cached_property
    def _entries(self) -> dict[str, tuple[Json, list[str]]]:
        return {entry["id"]: (entry, answers) for entry, answers in data.entries_of()}

    def scripted_memory(self, backend: str, scenario: str) -> Json:
        """The note-taker's memory of a scenario, its conversations run in order."""
        if (backend, scenario) not in self._scripted:
            memory: Json = {}
            for number in range(self.conversations(scenario)):
                task = self.conversation(backend, scenario, number, memory)
                memory = self.after(task, [call for turn in task.turns for call in turn.gold])
            self._scripted[backend, scenario] = memory
        return self._scripted[backend, scenario]

    def make_tasks(self) -> list[Task]:
        return [self.question(backend, id_) for backend in self.backends for id_ in self._entries]

    def question(self, backend: str, entry: str, memory: Json | None = None) -> Task:
        """Question `entry` (as "memory_0-customer-0") over a memory; None: over the note-taker's."""
        return data.question(*self._entries[entry], backend, memory)

    def questions(self, scenario: str) -> list[str]:
        """Names of a scenario's questions, for `question`."""
        return [id_ for id_, (entry, _) in self._entries.items() if entry["scenario"] == scenario]

    def conversations(self, scenario: str) -> int:
        return len(data.conversation_entries(scenario))

    def conversation(self, backend: str, scenario: str, number: int, memory: Json) -> Task:
        """Prerequisite conversation `number` of a scenario, starting from `memory` ({} before the first)."""
        return data.conversation(scenario, number, backend, memory)

    def after(self, task: Task, calls: Sequence[Call]) -> Json:
        """The memory after these calls of a conversation."""
        session = self.open(task)
        for call in calls:
            session.call(call)
        return session.state()

    def documents(self, task: Task) -> Mapping[str, ToolDoc]:
        return self._docs[task.initial_state["backend"]]

    @cached_property
    def _facts(self) -> dict[str, tuple[Fact, ...]]:
        """By tool. kv and vector share names: facts of the first backend that has the tool."""
        facts: dict[str, tuple[Fact, ...]] = {}
        for backend in self.backends:
            for entry in lines("multi_turn_func_doc", f"memory_{backend}.json"):
                facts.setdefault(entry["name"], entry_facts(self._docs[backend][entry["name"]], entry))
        return facts

    def facts(self, tools: Sequence[str]) -> tuple[Fact, ...]:
        return tuple(fact for name in dict.fromkeys(tools) for fact in self._facts.get(name, ()))

    def guidance(self, task: Task) -> tuple[str, ...]:
        """The official system messages: whose assistant the policy is, what it remembers, how to answer."""
        state = task.initial_state
        return data.guidance(state["scenario"], state["backend"], self._world(task).context(), "answers" in state)

    def open(self, task: Task) -> MemorySession | AnswerSession:
        world = self._world(task)
        return AnswerSession(world, task.initial_state["answers"]) if "answers" in task.initial_state else world

    def _world(self, task: Task) -> MemorySession:
        state = task.initial_state
        if "memory" in state:
            return MemorySession(state["backend"], state["memory"])
        return MemorySession(state["backend"], self.scripted_memory(state["backend"], state["scenario"]))
