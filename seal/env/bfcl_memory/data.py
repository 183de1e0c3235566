"""BFCL V4's memory questions and prerequisite conversations as tasks.

A question is a task of one turn. A conversation that comes before it is a task too, whose gold program is what the
scripted note-taker writes.
"""

import ast
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType

from seal.core.types import Call, Json, Split, Task, ToolDoc, UserTurn
from seal.env.bfcl.data import doc_of
from seal.env.bfcl.package import lines, root
from seal.env.bfcl_memory.note_taker import scripted_notes
from seal.env.bfcl_memory.session import tools_of
from seal.env.spoken_answers import RESPOND

# By scenario, so that no user is in two splits. With five of them, dev is a quarter of the training side (25 of 105).
SPLITS: Mapping[str, Split]
SPLITS = {"student": "train", "customer": "train", "notetaker": "dev", "finance": "test", "healthcare": "test"}
SETTINGS = "MEMORY_AGENT_SETTINGS"
ANSWER_FORMAT = "ADDITIONAL_SYSTEM_PROMPT_FOR_AGENTIC_RESPONSE_FORMAT"
CORE, UNIFIED = "MEMORY_BACKEND_INSTRUCTION_CORE_ARCHIVAL", "MEMORY_BACKEND_INSTRUCTION_UNIFIED"
PROMPTS = (SETTINGS, ANSWER_FORMAT, CORE, UNIFIED)


@cache
def prompts() -> Mapping[str, Json]:
    """The official prompt texts, read from the package without running it."""
    tree = ast.parse((root() / "constants" / "default_prompts.py").read_text(encoding="utf-8"))
    assigned = {node.targets[0].id: node.value for node in tree.body if isinstance(node, ast.Assign)}
    return MappingProxyType({name: ast.literal_eval(assigned[name]) for name in PROMPTS})


def docs_of(backend: str) -> tuple[ToolDoc, ...]:
    """Tool documents in the official order."""
    order = tools_of(backend)
    entries = lines("multi_turn_func_doc", f"memory_{backend}.json")
    return tuple(doc_of(entry, order[entry["name"]]) for entry in entries)


def entries_of() -> list[tuple[Json, list[str]]]:
    """`(question entry, its answers)` in the official order."""
    answers = {entry["id"]: entry["ground_truth"] for entry in lines("possible_answer", "BFCL_v4_memory.json")}
    return [(entry, answers[entry["id"]]) for entry in lines("BFCL_v4_memory.json")]


def question(entry: Json, answers: list[str], backend: str, memory: Json | None = None) -> Task:
    """One question, over `memory`; None: over the note-taker's, which the task then does not carry."""
    text = "\n\n".join(message["content"] for message in entry["question"][0])
    state = {"backend": backend, "scenario": entry["scenario"], "answers": answers}
    state |= {} if memory is None else {"memory": memory}
    return _task(entry, f"memory_{backend}", [UserTurn(text, (Call(RESPOND, {"content": answers[0]}),))], state)


@cache
def conversation_entries(scenario: str) -> list[Json]:
    return lines("memory_prereq_conversation", f"memory_{scenario}.json")


def conversation(scenario: str, number: int, backend: str, memory: Json) -> Task:
    """Prerequisite conversation `number` of a scenario, starting from `memory`. Its last turn is when notes are due."""
    entries = conversation_entries(scenario)
    entry = entries[number]
    texts = ["\n\n".join(message["content"] for message in turn) for turn in entry["question"]]
    notes = scripted_notes(backend, entry["topic"], number, len(entries), texts)
    turns = [*map(UserTurn, texts[:-1]), UserTurn(texts[-1], notes)]
    state = {"backend": backend, "scenario": scenario, "memory": memory}
    return _task(entry, f"memory_{backend}_prereq", turns, state)


def guidance(scenario: str, backend: str, context: str, asks: bool) -> tuple[str, ...]:
    """The official system messages of a conversation (`asks`: of a question). `context`: what of the memory is seen."""
    template = prompts()[UNIFIED if backend == "rec_sum" else CORE]  # rec_sum has all in sight, the others an archive
    text = template.format(scenario_setting=prompts()[SETTINGS][scenario], memory_content=context).strip()
    return (text, prompts()[ANSWER_FORMAT].strip()) if asks else (text,)


def _task(entry: Json, category: str, turns: Sequence[UserTurn], state: Mapping[str, Json]) -> Task:
    backend, scenario = state["backend"], state["scenario"]
    id_, tools = entry["id"].replace("memory", f"memory_{backend}", 1), tuple(tools_of(backend))
    return Task(id_, "bfcl_memory", category, scenario, SPLITS[scenario], tuple(turns), state, tools)
