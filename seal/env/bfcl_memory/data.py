"""BFCL V4's memory questions and prerequisite conversations as tasks.

A question is a task of one turn. A conversation that comes before it is a task too, whose gold program is what the
scripted note-taker writes.
"""

import ast
from collections.abc import Mapping
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
    asked = "\n\n".join(message["content"] for message in entry["question"][0])
    state = {"backend": backend, "scenario": entry["scenario"], "answers": answers}
    return Task(
        task_id=_id(entry, backend),
        env="bfcl_memory",
        category=f"memory_{backend}",
        scenario_id=entry["scenario"],
        split=SPLITS[entry["scenario"]],
        turns=(UserTurn(asked, (Call(RESPOND, {"content": answers[0]}),)),),
        initial_state=state if memory is None else {**state, "memory": memory},
        toolset=tuple(tools_of(backend)),
    )


@cache
def conversation_entries(scenario: str) -> list[Json]:
    return lines("memory_prereq_conversation", f"memory_{scenario}.json")


def conversation(scenario: str, number: int, backend: str, memory: Json) -> Task:
    """Prerequisite conversation `number` of a scenario, starting from `memory`. Its last turn is when notes are due."""
    entries = conversation_entries(scenario)
    entry = entries[number]
    said = ["\n\n".join(message["content"] for message in turn) for turn in entry["question"]]
    taken = scripted_notes(backend, entry["topic"], number, len(entries), said)
    return Task(
        task_id=_id(entry, backend),
        env="bfcl_memory",
        category=f"memory_{backend}_prereq",
        scenario_id=scenario,
        split=SPLITS[scenario],
        turns=tuple(UserTurn(text, taken if turn == len(said) - 1 else ()) for turn, text in enumerate(said)),
        initial_state={"backend": backend, "scenario": scenario, "memory": memory},
        toolset=tuple(tools_of(backend)),
    )


def guidance(scenario: str, backend: str, context: str, asks: bool) -> tuple[str, ...]:
    """The official system messages of a conversation (`asks`: of a question). `context`: what of the memory is seen."""
    template = prompts()[UNIFIED if backend == "rec_sum" else CORE]  # rec_sum has all in sight, the others an archive
    text = template.format(scenario_setting=prompts()[SETTINGS][scenario], memory_content=context).strip()
    return (text, prompts()[ANSWER_FORMAT].strip()) if asks else (text,)


def _id(entry: Json, backend: str) -> str:
    return entry["id"].replace("memory", f"memory_{backend}", 1)
