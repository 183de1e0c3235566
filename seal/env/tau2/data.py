"""tau2's entries and tools as tasks and ToolDocs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from seal.core.types import Call, Json, Param, Split, Task, ToolDoc, UserTurn
from seal.env.tau2.environments import PARTS, tools_of
from seal.env.tau2.package import entries, module
from seal.env.tau2.session import DONE, RESPOND
from seal.tools.docs import tool_doc
from seal.tools.parse import call_text

DEV_EVERY = 5  # of the training scenarios
_RESPOND = ToolDoc(RESPOND, "Send a message to the user. An answer without a call does the same.", (Param("content"),))
_DONE = ToolDoc(DONE, "Call this function when you are done with the task.")


def load_tasks(domain: str, user: str) -> list[Task]:
    """The base set of a domain in the official order. `user`: scripted, endpoint or solo.

    Splits are the official ones; of the training tasks every fifth is dev. One task is one user turn: what the policy
    says in between are calls of `respond`.
    """
    listed, splits = entries(domain)
    train, test = set(splits["train"]), set(splits["test"])
    in_train = [entry["id"] for entry in listed if entry["id"] in train]
    dev = set(in_train[DEV_EVERY - 1 :: DEV_EVERY])
    split = {entry["id"]: "dev" if entry["id"] in dev else "train" for entry in listed} | dict.fromkeys(test, "test")
    return [_task(domain, user, entry, split[entry["id"]]) for entry in listed]


def _task(domain: str, user: str, entry: Json, split: Split) -> Task:
    id_, criteria = f"{domain}_{entry['id']}", entry["evaluation_criteria"]
    turn = UserTurn(_message(domain, user, entry), _gold(user, criteria))
    state = {"domain": domain, "user": user, "scenario": scenario(entry)}
    state |= {"initial": entry.get("initial_state"), "criteria": criteria}
    return Task(id_, "tau2", domain, id_, split, (turn,), state, tuple(docs_of(domain, user)))


def scenario(entry: Json) -> str:
    """The user's instructions, as the official simulator gets them."""
    return str(module("data_model.tasks").UserScenario.model_validate(entry["user_scenario"]))


def _message(domain: str, user: str, entry: Json) -> str:
    """The first message: the ticket in solo, nothing where a model plays the user, else the user's notes."""
    if user == "solo":
        return entry["ticket"]
    if user == "endpoint":
        return ""
    lines = ["These are my notes for this call.", "", scenario(entry)]
    if tools := tools_of(domain, "user_tools"):
        calls = (f"{name}({', '.join(doc.params.model_fields)})" for name, doc in tools.items())
        lines += ["", f"Write out what I am to do on my phone, as one of these calls: {', '.join(calls)}"]
    return "\n".join(lines)


def _gold(user: str, criteria: Json) -> tuple[Call, ...]:
    """The official actions: the user's own are asked for, and at last what is to be communicated is said."""
    actions, calls, waiting = criteria.get("actions") or [], [], []
    for action in actions:
        call = Call(action["name"], action["arguments"])
        if user == "solo" or action.get("requestor", "assistant") == "assistant":
            calls += [_asking(waiting), call] if waiting else [call]
            waiting = []
        else:
            waiting.append(call)
    if waiting:
        calls.append(_asking(waiting))
    if user == "solo":
        return (*calls, Call(DONE, {}))
    words = "".join(f" {info}." for info in criteria.get("communicate_info") or [])
    return (*calls, Call(RESPOND, {"content": f"That is all.{words}"}))


def _asking(calls: Sequence[Call]) -> Call:
    return Call(RESPOND, {"content": "\n".join(["Please do:", *map(call_text, calls)])})


@cache
def docs_of(domain: str, user: str) -> Mapping[str, ToolDoc]:
    """`{tool: doc}` of the policy's tools, official order: the agent's, in solo the user's too, and how to end."""
    sides = PARTS if user == "solo" else PARTS[:1]
    tools = [item for side in sides for item in tools_of(domain, side).items()]
    docs = {name: _doc(tool.openai_schema["function"]) for name, tool in tools}
    return docs | ({DONE: _DONE} if user == "solo" else {RESPOND: _RESPOND})


def _doc(function: Json) -> ToolDoc:
    """A union, whose type no name tells, is one of objects here."""
    doc = tool_doc(function["name"], function["description"], function["parameters"], verbatim=True)
    return replace(doc, params=tuple(replace(param, type=param.type or "object") for param in doc.params))
