"""What docs tell in prose, as facts and cues: synthetic docs, then BFCL's and tau2's own."""

import pytest

from seal.core.types import Param, Task, ToolDoc, UserTurn
from seal.evolve.evidence import Evidence
from seal.evolve.selection import evolve
from seal.interface import wording
from seal.interface.doc_facts import companions_of, example_of, facts_of_docs, siblings_of
from seal.interface.render import render
from seal.interface.state import InterfaceState, Item
from seal.interface.view import View
from seal.settings.evolve import EvolveParams
from seal.tools.prose import format_in_text, purpose_in_text, range_in_text, unit_in_text, values_in_text

DRIVE = ToolDoc(
    "set_speed",
    "Cars. Tool description: Set the speed of the car. It may take a while.",
    (
        Param("speed", "number", description="The speed in km/h, between 0 and 120."),
        Param("mode", description="Mode ('e' for eco, 's' for sport)."),
        Param("steps", "integer", required=False, default=3),
        Param("note", required=False, default="None"),
    ),
)
STOP = ToolDoc("set_speed_zero", "Set the speed of the car to zero.", ())
OTHER = ToolDoc("sing", "Play a song.", ())


@pytest.mark.parametrize(
    ("description", "text"),
    [
        ("The date of the travel in the format YYYY-MM-DD", "YYYY-MM-DD"),
        ("Start date for the history (format: 'YYYY-MM-DD').", "YYYY-MM-DD"),
        ("The expiration date of the credit card in the format MM/YYYY", "MM/YYYY"),
        ("Return in the format of YYYY-MM-DDTHH:MM:SS.", "YYYY-MM-DDTHH:MM:SS"),
        ("The destination in the format of street, city, state.", "street, city, state"),
        ("The 3 letter code of the departing airport", "3 letter code"),
        ("The origin city airport in three letters, such as 'JFK'.", "three letters"),
        ("List of tags. Tag name should start with #. This is", "#"),
        ("Be careful there is a '#' symbol at the beginning of the order id.", "#"),
        ("The name of the file.", ""),
    ],
)
def test_formats_in_prose(description, text):
    assert format_in_text(description) == text


def test_units_in_prose():
    assert unit_in_text("The distance to travel in miles.") == "miles"
    assert unit_in_text("The budget limit to set in USD") == "USD"
    assert unit_in_text("A file in the current directory") == ""


def test_ranges_in_prose():
    assert range_in_text("Priority of the ticket, from 1 to 5. Defaults to 1.") == ("1", "5")
    assert range_in_text("between 0 (not pressed) and 1 (fully pressed).") == ("0", "1")
    assert range_in_text("from one to another") is None


def test_values_in_prose_without_a_mark():
    assert values_in_text("('l' for lines, 'w' for words)") == {"lines": "l", "words": "w"}
    assert values_in_text("Type of the order (Buy/Sell).") == ("Buy", "Sell")
    assert values_in_text("either 'no longer needed' or 'ordered by mistake'.") == (
        "no longer needed",
        "ordered by mistake",
    )
    assert values_in_text("the source 'a' for it") == ()


def test_purposes_are_first_sentences():
    assert purpose_in_text(DRIVE.description) == "Set the speed of the car"
    assert purpose_in_text("Get a ticket by its ID. The ID is a number.") == "Get a ticket by its ID"
    assert purpose_in_text("Rounds, e.g. to two places. Fast.") == "Rounds, e.g. to two places"


@pytest.mark.parametrize(
    ("call_format", "text"),
    [
        ("words", "set_speed speed=<number> mode=<string>"),
        ("pythonic", "[set_speed(speed=<number>, mode='<string>')]"),
        (
            "qwen_xml",
            '<tool_call> {"name": "set_speed", "arguments": {"speed": <number>, "mode": "<string>"}} </tool_call>',
        ),
        ("llama_json", '{"name": "set_speed", "parameters": {"speed": <number>, "mode": "<string>"}}'),
    ],
)
def test_an_example_has_placeholders_for_what_is_required(call_format, text):
    assert example_of(DRIVE, call_format) == text
    assert "<number>" in example_of(DRIVE, "openai")


def test_a_sibling_is_alike_and_says_something_else():
    assert siblings_of(DRIVE, [DRIVE, STOP, OTHER]) == {"set_speed_zero": "Set the speed of the car to zero"}
    assert siblings_of(OTHER, [DRIVE, STOP]) == {}
    twin = ToolDoc("set_speed_again", "Set the speed of the car.", ())
    assert siblings_of(DRIVE, [twin]) == {}


def test_siblings_stand_together_wherever_they_stand():
    together = companions_of(["a", "b", "c"], [("a", "b"), ("a", "b", "c")])
    assert together == {"a": {"a", "b"}, "b": {"a", "b"}, "c": {"a", "b", "c"}}
    apart = facts_of_docs((DRIVE, STOP), "words", [("set_speed",), ("set_speed", "x"), ("set_speed_zero",)])
    assert "sibling" not in {fact.kind for fact in apart}


def test_told_facts_are_documented_and_wait_until_failing_persists():
    facts = facts_of_docs((DRIVE, STOP), "words")
    assert all(fact.documented for fact in facts)
    found = {(fact.tool, fact.param, fact.kind): fact.value for fact in facts}
    assert found["set_speed", "speed", "unit"] == "km/h" and found["set_speed", "speed", "range"] == ["0", "120"]
    assert found["set_speed", "mode", "enum"] == {"eco": "e", "sport": "s"}
    assert found["set_speed", "steps", "default"] == 3 and ("set_speed", "note", "default") not in found
    row = {
        "category": "base",
        "tool": "set_speed",
        "parameter": "speed",
        "label": "argument_mismatch",
        "n": 5,
        "rate": 1,
    }
    params = EvolveParams(kinds=("all",))
    assert {i.kind for i in evolve(InterfaceState(), Evidence([row], docs=(DRIVE,)), params, "r1")[0].active} == {
        "guidance"
    }
    state, _ = evolve(InterfaceState(), Evidence([{**row, "n_parent": 5}], docs=(DRIVE,)), params, "r2")
    assert {i.text for i in state.active if i.target == "set_speed.speed"} == {"in km/h", "from 0 to 120"}
    plain, _ = evolve(InterfaceState(), Evidence([{**row, "n_parent": 5}], docs=(DRIVE,)), EvolveParams(), "r2")
    assert not plain.active


def test_a_sibling_that_is_withheld_is_not_named():
    state = InterfaceState((Item("sibling", "set_speed", "docs", "set_speed_zero is for: stop", "", ""),))
    assert not render((DRIVE,), state)[0].notes
    assert render((DRIVE, STOP), state)[0].notes
    back = InterfaceState((Item("sibling", "set_speed_zero", "docs", "set_speed is for: drive", "", ""),))

    turns = UserTurn("hi"), UserTurn("go")
    task = Task("t", "e", "base", "s", "train", turns, {}, ("set_speed",), {"set_speed_zero": 1})

    class Reveals:
        def docs(self, task, turn):
            return (DRIVE, STOP) if turn else (DRIVE,)

        def revealed(self, task, turn):
            return (STOP,) if turn else ()

    assert View(Reveals(), task, back, "full").revealed(1)[0].notes


def cues(docs):
    """(tool, parameter, kind) -> text of everything the docs tell."""
    facts = facts_of_docs(docs, "pythonic")
    return {(f.tool, f.param, f.kind): cue.text for f in facts if (cue := wording.note(f))}


def test_bfcl_docs_tell_these():
    from seal.env import load_env

    env, docs = load_env("bfcl"), {}
    for task in {task.toolset: task for task in env.tasks()}.values():
        docs.update((doc.name, doc) for doc in env.docs(task, len(task.turns) - 1))
    found = cues(tuple(docs.values()))
    assert len(docs) == 128
    assert {key: found[key] for key in found if key[0] == "setCruiseControl"} == {
        ("setCruiseControl", "", "example"): (
            "call as [setCruiseControl(speed=<number>, activate=<boolean>, distanceToNextVehicle=<number>)]"
        ),
        ("setCruiseControl", "speed", "range"): "from 0 to 120",
        ("setCruiseControl", "speed", "unit"): "in m/h",
        ("setCruiseControl", "distanceToNextVehicle", "unit"): "in meters",
    }
    assert found["cp", "", "sibling"] == "mv is for: Move a file or directory from one location to another"
    assert found["get_flight_cost", "travel_date", "format"] == "format YYYY-MM-DD"
    assert found["place_order", "order_type", "enum"] == "one of Buy Sell"
    assert found["tail", "lines", "default"] == "default 10"
    assert found["wc", "mode", "enum"] == "characters c lines l words w"
