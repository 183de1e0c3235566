"""Docs notes, hints, feedback and the view: what each mode shows, and that "off" shows nothing of the interface."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seal.core.errors import ArtifactError, ParamError
from seal.core.types import Call, CallError, Note, Param, Result, Task, ToolDoc, UserTurn
from seal.env.base import Environment
from seal.interface.feedback import feedback, parse_feedback, raw_error
from seal.interface.render import MODES, hints, render
from seal.interface.state import InterfaceState, Item, load_interface
from seal.interface.view import View
from seal.interface.wording import CALL_EXAMPLES, RECOVERY_TEMPLATES

REFUND = ToolDoc("refund", "refund", (Param("order"), Param("reason")))
VERIFY = ToolDoc("verify", "verify", (Param("order"),))
GIFT = ToolDoc("wrap_gift", "wrap", (Param("order"), Param("count", "integer", required=False)))
DOCS = (REFUND, VERIFY)


def item(kind, target, where, text):
    return Item(kind, target, where, text, "argument_mismatch", "r1")


ENUM = item("enum", "refund.reason", "docs", "damaged K3 late K1")
NEEDS = item("needs", "refund", "docs", "after verify")
GIFT_FORMAT = item("format", "wrap_gift.order", "docs", "starts ORD-")
RECOVER_ENUM = item("recover", "refund.reason", "feedback", "reason= damaged K3 late K1")
RECOVER_NEEDS = item("recover", "refund", "feedback", "after verify")
UNKNOWN = item("recover_any", "unknown_tool", "feedback", "tools {nearest}")
MISSING = item("recover_any", "missing_argument", "feedback", "required {missing}")
LOOP = item("recover_any", "loop", "feedback", "the same call failed before change it")
FORMAT = item("call_format", "syntax", "feedback", "call as name key=value")
CAUTION = item("guidance", "miss_param", "hint", "call nothing when a value is missing")
ALWAYS = item("guidance", "*", "hint", "read earlier results")
STATE = InterfaceState(
    (ENUM, NEEDS, GIFT_FORMAT, RECOVER_ENUM, RECOVER_NEEDS, UNKNOWN, MISSING, LOOP, FORMAT, CAUTION, ALWAYS)
)


class TwoTurns(Environment):
    """An environment that reveals one tool at turn 1."""

    def docs(self, task, turn):
        return (*DOCS, GIFT) if turn else DOCS

    def revealed(self, task, turn):
        return (GIFT,) if turn == 1 else ()


TASK = Task("t", "e", "miss_param", "s", "train", (UserTurn("hi"), UserTurn("go")), {}, ("refund",), {"wrap_gift": 1})


def view(mode="off", dropped="", state=STATE):
    return View(TwoTurns(), TASK, state, mode, dropped)


def test_notes_stand_at_their_tool_and_parameter():
    refund, verify = render(DOCS, STATE)
    assert [(note.param, note.text, note.item) for note in refund.notes] == [
        ("", "after verify", NEEDS.id),
        ("reason", "damaged K3 late K1", ENUM.id),
    ]
    assert verify is VERIFY


def test_rendering_depends_on_the_set_of_items_alone():
    second = item("type", "refund.reason", "docs", "string")
    a, b = InterfaceState((ENUM, second, NEEDS)), InterfaceState((NEEDS, second, ENUM))
    assert a.hash == b.hash and render(DOCS, a) == render(DOCS, b)


def test_items_that_are_not_active_are_not_shown():
    gone = InterfaceState((Item("enum", "refund.reason", "docs", "x", "", "r1", status="retired"),))
    assert gone.hash == "bare" and render(DOCS, gone) == DOCS


@pytest.mark.parametrize(
    ("mode", "in_docs", "in_feedback"),
    [("full", True, True), ("docs_only", True, False), ("feedback_only", False, True), ("off", False, False)],
)
def test_modes_decide_where_the_interface_speaks(mode, in_docs, in_feedback):
    result = Result("error invalid reason=", "error invalid reason=", "invalid_value")
    call = Call("refund", {"order": "1", "reason": "damaged"})
    assert (render(DOCS, STATE, mode) != DOCS) is in_docs
    assert hints("miss_param", STATE, mode) == ((ALWAYS.text, CAUTION.text) if in_docs else ())
    assert (feedback(call, result, DOCS, STATE, mode) != result.raw) is in_feedback
    assert (parse_feedback(CallError("syntax", "?"), DOCS, STATE, mode) != "error parse") is in_feedback


def test_hints_of_other_categories_stay_away():
    assert hints("base", STATE) == (ALWAYS.text,)


def shown(call, raw, kind, state=STATE, mode="full", repeats=0):
    return feedback(call, Result(raw, raw, kind), DOCS, state, mode, repeats)


def test_feedback_names_the_failing_parameter_or_the_refusing_tool():
    call = Call("refund", {"order": "1", "reason": "x"})
    assert shown(call, "error invalid reason=", "invalid_value") == "error invalid reason= | reason= damaged K3 late K1"
    assert shown(call, "error refused", "precondition") == "error refused | after verify"
    assert shown(call, "error invalid order=", "invalid_value") == "error invalid order="


def test_feedback_templates_name_tools_and_parameters_in_sight():
    assert shown(Call("refnd", {}), "error unknown tool", "unknown_tool") == "error unknown tool | tools refund"
    assert shown(Call("verify", {}), "error", "missing_argument") == "error | required order="
    assert shown(Call("verify", {"order": "1"}), "error", "missing_argument") == "error"


def test_feedback_on_success_is_the_raw_text():
    assert shown(Call("refund", {"reason": "x"}), "reason error", "") == "reason error"


def test_feedback_on_a_repeated_failure():
    call = Call("verify", {"order": "1"})
    assert shown(call, "error not found order=", "not_found") == "error not found order="
    assert shown(call, "error not found order=", "not_found", repeats=1).endswith(" | " + LOOP.text)


def test_feedback_only_tells_what_the_docs_may_not():
    state = InterfaceState((ENUM, NEEDS))
    call = Call("refund", {"order": "1", "reason": "x"})
    told = shown(call, "error invalid reason=", "invalid_value", state, "feedback_only")
    assert told == "error invalid reason= | reason= damaged K3 late K1"
    assert shown(call, "error refused", "precondition", state, "feedback_only") == "error refused | after verify"
    assert shown(call, "error invalid reason=", "invalid_value", state, "full") == "error invalid reason="


def test_feedback_only_names_the_tool_that_returns_what_was_not_found():
    state = InterfaceState((item("returns", "verify", "docs", "returns reason="),))
    call, raw = Call("refund", {"order": "1", "reason": "x"}), "error not found reason="
    assert shown(call, raw, "not_found", state, "feedback_only") == f"{raw} | verify returns reason="
    assert shown(call, raw, "not_found", state, "full") == raw
    withheld = InterfaceState((item("returns", "wrap_gift", "docs", "returns reason="),))
    assert shown(call, raw, "not_found", withheld, "feedback_only") == raw


def test_feedback_only_shows_an_example_of_a_call_that_does_not_fit():
    state = InterfaceState((item("example", "refund", "docs", "call as refund order=<string>"),))
    told = shown(Call("refund", {}), "error missing", "missing_argument", state, "feedback_only")
    assert told == "error missing | call as refund order=<string>"


def test_a_template_is_left_out_where_all_of_it_is_said():
    state = InterfaceState(
        (
            item("recover", "verify.order", "feedback", "order= one of A B"),
            item("recover", "refund", "feedback", "after verify"),
            item("recover_any", "invalid_value", "feedback", "give {allowed}"),
            item("recover_any", "precondition", "feedback", "another tool must succeed first"),
        )
    )
    docs = (ToolDoc("verify", "verify", (Param("order", enum=("A", "B")),)), REFUND)
    call, result = Call("verify", {"order": "C"}), Result("bad order", "bad order", "invalid_value")
    assert feedback(call, result, docs, state) == "bad order | order= one of A B"
    assert shown(Call("refund", {}), "refused", "precondition", state) == "refused | after verify"
    assert shown(Call("verify", {}), "refused", "precondition", state) == "refused | another tool must succeed first"


def test_hints_of_every_category_are_said_once():
    assert hints("*", STATE) == (ALWAYS.text,)


def test_feedback_says_a_text_once():
    call = Call("refund", {"order": "1", "reason": "x"})
    assert shown(call, "error refused", "precondition", STATE, "feedback_only") == "error refused | after verify"


def test_parse_feedback():
    assert parse_feedback(CallError("syntax", "?"), DOCS, STATE) == "error parse | call as name key=value"
    error = CallError("unknown_tool", "no tool named verfy")
    assert parse_feedback(error, DOCS, STATE) == "error unknown tool | tools verify"


def test_view_annotates_revealed_tools_and_names_no_withheld_one():
    full = view("full")
    assert full.revealed(1)[0].notes[0].text == "starts ORD-"
    assert [doc.name for doc in full.docs(0)] == ["refund", "verify"] and full.docs(1)[2].notes
    call, result = Call("wrap_gft", {}), Result("error unknown tool", "error unknown tool", "unknown_tool")
    assert full.shown(call, result, 0) == "error unknown tool"
    assert full.shown(call, result, 1) == "error unknown tool | tools wrap_gift"


def test_a_note_that_the_bare_doc_has_is_not_repeated():
    """The same words at another parameter are another note."""
    doc = replace(REFUND, notes=(Note("reason", ENUM.text), Note("order", NEEDS.text)))
    (told,) = render((doc,), STATE)
    assert [(note.param, note.text, note.item) for note in told.notes] == [
        ("reason", ENUM.text, ""),
        ("order", NEEDS.text, ""),
        ("", NEEDS.text, NEEDS.id),
    ]


@pytest.mark.parametrize(
    ("where", "text"),
    [
        *(("docs", text) for text in ("after wrap_gift", "after verify after wrap_gift", "wrap_gift is for: a gift")),
        *(("feedback", text) for text in ("wrap_gift must succeed first", "call as [wrap_gift(order='<string>')]")),
    ],
)
def test_nothing_names_a_tool_before_its_turn(where, text):
    cue = item("needs", "refund", where, text)
    other = item("needs", "refund", where, "requires wrap_gifts")
    state = InterfaceState((cue, other, replace(cue, target="wrap_gift")), version=2)
    full, result = view("full", state=state), Result("refused", "refused", "precondition")
    told = [
        " ".join([*(note.text for note in full.docs(turn)[0].notes), full.shown(Call("refund", {}), result, turn)])
        for turn in (0, 1)
    ]
    assert text not in told[0] and text in told[1]
    assert all("requires wrap_gifts" in each for each in told), "a longer name is another one"


def test_notes_of_a_round_of_recipe_1_are_what_they_were():
    state = InterfaceState((item("needs", "refund", "docs", "after wrap_gift"),))
    assert [note.text for note in view("full", state=state).docs(0)[0].notes] == ["after wrap_gift"]
    newer = replace(state, version=2)
    assert not view("full", state=newer).docs(0)[0].notes and view("full", state=newer).docs(1)[0].notes
    assert newer.hash != state.hash and replace(newer, items=()).hash == "bare"


def test_no_hint_names_a_withheld_tool():
    hint = item("guidance", "*", "hint", "try wrap_gift")
    assert view("full", state=InterfaceState((hint, ALWAYS), version=2)).hints() == (ALWAYS.text,)


def test_view_leaves_the_dropped_item_out():
    assert view("full", ENUM.id).docs(0) == render(DOCS, InterfaceState((NEEDS,)))
    with pytest.raises(ParamError, match="half"):
        view("half")


RESULTS = st.sampled_from(["", "invalid_value", "precondition", "unknown_tool", "missing_argument", "other"])
CALLS = st.builds(Call, st.sampled_from(["refund", "verify", "wrap_gift", "none"]), st.just({"order": "1"}))


@settings(max_examples=60, deadline=None)
@given(CALLS, RESULTS, st.text(max_size=20), st.integers(0, 1), st.integers(0, 3))
def test_off_is_the_bare_interface_to_the_byte(call, kind, raw, turn, repeats):
    """Evaluation: whatever the interface holds, mode off is what no interface at all would show."""
    off, bare, env = view("off"), view("full", state=InterfaceState()), TwoTurns()
    assert off.docs(turn) == bare.docs(turn) == env.docs(TASK, turn)
    assert off.revealed(turn) == bare.revealed(turn) == env.revealed(TASK, turn)
    assert off.hints() == bare.hints() == ()
    result, error = Result(raw, raw, kind), CallError("syntax", raw)
    assert off.shown(call, result, turn, repeats) == bare.shown(call, result, turn, repeats) == raw
    assert off.shown_error(error, turn) == bare.shown_error(error, turn) == raw_error(error)
    assert set(MODES) == {"off", "full", "docs_only", "feedback_only"}


def test_state_survives_its_file(tmp_path):
    path = tmp_path / "interface.json"
    path.write_text(STATE.to_json())
    assert load_interface(path) == STATE and load_interface(path).hash == STATE.hash
    assert load_interface(str(path)) == STATE
    with pytest.raises(ArtifactError, match="none.json is not there\n.*name an interface.json"):
        load_interface(tmp_path / "none.json")
    with pytest.raises(ParamError, match="dict is no path"):
        load_interface({"version": 1, "items": []})


ROW = {"kind": "enum", "target": "t.p", "where": "docs", "text": "one of A B", "label": "", "born_in": "r1"}


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"status": "weird"}, r"items\[0\]: status 'weird'; use one of active, retired, rolled_back"),
        ({"where": "nowhere"}, r"items\[0\]: where 'nowhere'; use one of docs, feedback, hint"),
        ({"kind": "charm"}, r"items\[0\]: kind 'charm'; use one of enum, format"),
        ({"support": "x"}, r"items\[0\]: support is no int"),
        ({"support": True}, r"items\[0\]: support True"),
        ({"support": -1}, r"items\[0\]: support -1"),
        ({"evidence": 3}, r"items\[0\]: evidence is no object"),
        ({"id": "00000000"}, r"items\[0\]: id '00000000' is not that of its kind, target and text"),
        ({"id": 7}, r"items\[0\]: id is no str"),
        ({"text": ""}, r"items\[0\]: target and text must not be empty"),
        ({"text": None}, r"items\[0\]\.text is no str"),
        ({"extra": 1}, r"items\[0\]: unknown key 'extra'"),
        ({"text": " "}, r"items\[0\]: target and text must not be empty"),
        ({"target": "t\ud800"}, r"items\[0\]: target .*must be one line"),
        *(({"text": f"a{c}b"}, r"items\[0\]: text .*must be one line") for c in "\n\r\x00\x1b\x85\u2028\ud800"),
        *(
            ({"kind": kind, "text": text}, rf"items\[0\]: text .*: {says}")
            for kind in ("recover_any", "call_format")
            for text, says in (
                ("give {foo}", r"unknown slot \{foo\}; the slots are \{missing\}"),
                ("give {missing} {0}", r"unknown slot \{0\}"),
                ("give {{foo}}", r"unknown slot \{foo\}"),
                ("give {0.__class__}", "a brace that is no slot"),
                ("give {missing!r}", "a brace that is no slot"),
                ("give {", "a brace that is no slot"),
                ("give missing}", "a brace that is no slot"),
            )
        ),
        ({"kind": "recover_any", "text": 'give {"a": 1}'}, "a brace that is no slot"),
    ],
)
def test_a_state_from_elsewhere_is_checked(tmp_path, changed, says):
    path = tmp_path / "interface.json"
    path.write_text(json.dumps({"version": 1, "items": [ROW | changed]}))
    with pytest.raises(ArtifactError, match=says) as error:
        load_interface(path)
    assert error.value.remedy.startswith("mend it, or copy it anew")


TEMPLATES = [
    *(("recover_any", text) for text in (*RECOVERY_TEMPLATES.values(), "100 %s of {missing} {types}")),
    *(("call_format", text) for text in (*CALL_EXAMPLES.values(), "call {nearest} as { } or {}")),
    ("enum", "one of {a} {0.b} {"),  # a value, which nothing fills
]


@pytest.mark.parametrize(("kind", "text"), TEMPLATES)
def test_whole_templates_and_braces_of_values_are_read(tmp_path, kind, text):
    path, state = tmp_path / "interface.json", InterfaceState((Item(**ROW | {"kind": kind, "text": text}),))
    path.write_text(state.to_json())
    assert load_interface(path) == state


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"version": 99, "items": []}, "version 99\n.*reads versions 1 to 2"),
        ({"version": 0, "items": []}, "version 0"),
        ({"version": True, "items": []}, "version True"),
        ({"version": 1, "items": [], "mode": "full"}, "unknown key 'mode'; known: version, items"),
        ({"items": []}, "no 'version'"),
        ({"version": 1, "items": [{"kind": "enum"}]}, r"items\[0\] has no 'target'"),
        ({"version": 1, "items": [ROW, ROW]}, r"items\[1\]: id '\w{8}' is there twice"),
        ({"version": 1, "items": [ROW, 7]}, r"items\[1\] is no object"),
        ([], "it is no object\n.*mend it, or copy it anew"),
    ],
)
def test_a_file_that_is_no_state_is_told_from_one(tmp_path, content, says):
    path = tmp_path / "interface.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ArtifactError, match=says):
        load_interface(path)


@pytest.mark.parametrize("version", [1, 2])
def test_a_state_keeps_its_version(tmp_path, version):
    path, state = tmp_path / "interface.json", replace(STATE, version=version)
    path.write_text(state.to_json())
    assert load_interface(path) == state and state.without(ENUM.id).version == version
    assert state.without_naming(["verify"]).version == version


def test_a_state_written_by_hand_needs_the_texts_alone(tmp_path):
    path = tmp_path / "interface.json"
    path.write_text(json.dumps({"version": 1, "items": [ROW]}))
    assert load_interface(path).active == (Item(**ROW),)
