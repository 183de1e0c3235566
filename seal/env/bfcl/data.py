"""BFCL's entries and tool documents as tasks and ToolDocs."""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from seal.core.types import Fact, Json, Task, ToolDoc, UserTurn
from seal.env.bfcl.instances import signatures
from seal.env.bfcl.package import CATEGORIES, MODULES, lines
from seal.tools.docs import facts_of, tool_doc
from seal.tools.literal import call_of, tree_of

REVEAL = "I have updated some more functions you can choose from. What about now?"  # official words of a reveal turn
DEV_EVERY = 5  # of the training scenarios
_TYPES = {"float": "number", "dict": "object", "tuple": "array", "any": ""}


@cache
def known_bad(package: str = "seal.env.bfcl") -> Mapping[str, str]:
    """Task id -> "<kind>: <reason>" of the tasks whose reference is wrong or whose wording leaves the answer open,
    by the table of an environment's package. They are kept, scored as officially, and told apart.

    Kinds: *unsolvable* (no policy that keeps to the tools in sight can pass), *wrong* (the reference contradicts the
    request), *ambiguous* (a right answer can fail). `told` in the table is what the request asks for in place of an
    argument of the reference; the tests play it and see it fail.
    """
    table = json.loads(files(package).joinpath("known_bad.json").read_text())
    return {id_: f"{entry['kind']}: {entry['reason']}" for entry in table["entries"] for id_ in entry["tasks"]}


def load_tasks(tools: Mapping[str, Mapping[str, ToolDoc]]) -> list[Task]:
    """All 800 tasks in the official order. `tools`: per class, as `load_docs` gives them."""
    splits = _splits()
    tasks = []
    for category in CATEGORIES:
        file = f"BFCL_v4_multi_turn_{category}.json"
        answers = {answer["id"]: answer["ground_truth"] for answer in lines("possible_answer", file)}
        tasks += [_task(entry, answers[entry["id"]], category, tools, splits) for entry in lines(file)]
    return tasks


def _task(entry: Json, answer: Json, category: str, tools: Mapping, splits: Mapping[str, str]) -> Task:
    classes = entry["involved_classes"]
    toolset = tuple(tool for name in classes for tool in tools[name])
    order = {tool: dict.fromkeys(names, "") for name in classes for tool, names in signatures(name).items()}
    texts = map(_message, entry["question"])
    gold = [tuple(call_of(tree_of(text), order) for text in turn) for turn in answer]
    state = {"classes": classes, "config": entry["initial_config"], "long_context": category == "long_context"}
    return Task(
        task_id=entry["id"],
        env="bfcl",
        category=category,
        scenario_id=entry["id"].rsplit("_", 1)[1],
        split=splits[entry["id"]],
        turns=tuple(UserTurn(text, calls) for text, calls in zip(texts, gold, strict=True)),
        initial_state=state,
        toolset=toolset,
        holdout={tool: int(turn) for turn, names in entry.get("missed_function", {}).items() for tool in names},
        known_bad=known_bad().get(entry["id"], ""),
    )


def _message(messages: Sequence[Json]) -> str:
    return "\n".join(message["content"] for message in messages) if messages else REVEAL


def _splits() -> dict[str, str]:
    """The published halves; of the training half every fifth scenario, by base index, is dev. No scenario crosses."""
    ids = json.loads(files("seal.env.bfcl").joinpath("split.json").read_text())
    scenarios = sorted({int(task_id.rsplit("_", 1)[1]) for task_id in ids["train"]})
    dev = {str(index) for index in scenarios[DEV_EVERY - 1 :: DEV_EVERY]}
    train = {name: "dev" if name.rsplit("_", 1)[1] in dev else "train" for name in ids["train"]}
    return train | dict.fromkeys(ids["test"], "test")


def load_docs() -> tuple[dict[str, dict[str, ToolDoc]], dict[str, tuple[Fact, ...]]]:
    """`{class: {tool: doc}}` and `{tool: facts}`, in the official order of tools."""
    docs: dict[str, dict[str, ToolDoc]] = {}
    facts: dict[str, tuple[Fact, ...]] = {}
    for name, module in MODULES.items():
        entries = lines("multi_turn_func_doc", f"{module}.json")
        docs[name] = {entry["name"]: doc_of(entry, signatures(name)[entry["name"]]) for entry in entries}
        facts |= {entry["name"]: entry_facts(docs[name][entry["name"]], entry) for entry in entries}
    return docs, facts


def doc_of(entry: Json, order: Sequence[str]) -> ToolDoc:
    """Parameters stand in the order of the method's signature, by which positional arguments bind."""
    schema = entry["parameters"]
    named = sorted(schema["properties"].items(), key=lambda item: list(order).index(item[0]))
    properties = {name: {**spec, "type": _TYPES.get(spec["type"], spec["type"])} for name, spec in named}
    return tool_doc(entry["name"], entry["description"], {**schema, "properties": properties}, verbatim=True)


def entry_facts(doc: ToolDoc, entry: Json) -> tuple[Fact, ...]:
    """What a tool returns stands in the data file, not in the bare docs."""
    return facts_of(doc, sorted(entry.get("response", {}).get("properties", {})), in_prose=True)
