"""Labels of single turns and of whole rollouts, in a world small enough to see through."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from seal.core.errors import ParamError
from seal.core.labels import DEFAULT_PRIORITY, FAILURES, Label
from seal.core.types import Call, CallError, Param, Result, Rollout, Step, Task, ToolDoc, UserTurn, Verdict
from seal.diagnose import diagnose
from seal.diagnose.primary_label import Finding, parse_priority, primary
from seal.env.base import Environment, Session

DOCS = (
    ToolDoc("login", "log in"),
    ToolDoc("enter", "go into a room", (Param("room"),)),
    ToolDoc("put", "put a thing into the room one is in", (Param("thing"),)),
    ToolDoc("look", "what is in a room", (Param("room"),)),
    ToolDoc("book", "book a place; needs a login", (Param("place"), Param("seats", "integer", False, default=1))),
    ToolDoc("cancel", "cancel a booking", (Param("booking"),)),
    ToolDoc("wipe", "empty a room", (Param("room"),)),
)


class House(Session):
    """Rooms with things, bookings with ids in order of making. The room one is in and the login are private."""

    def __init__(self):
        self.rooms = {"hall": [], "attic": ["trunk"]}
        self.bookings: dict[str, str] = {}
        self._room, self._known, self._made = "hall", False, 0

    def state(self):
        return {"rooms": self.rooms, "bookings": self.bookings}

    def call(self, call):
        text, kind = self._run(call.name, dict(call.arguments))
        return Result(text, text, kind)

    def _run(self, name, a):
        doc = next((doc for doc in DOCS if doc.name == name), None)
        if doc is None:
            return f"error unknown tool {name}", "unknown_tool"
        if missing := [p.name for p in doc.params if p.required and p.name not in a]:
            return f"error missing {missing[0]}", "missing_argument"
        if "room" in a and a["room"] not in self.rooms:
            return f"error no room {a['room']}", "not_found"
        if name == "login":
            self._known = True
        elif name == "enter":
            self._room = a["room"]
            return f"in {a['room']}", ""
        elif name == "put":
            self.rooms[self._room].append(a["thing"])
        elif name == "wipe":
            self.rooms[a["room"]].clear()
        elif name == "look":
            return json.dumps(self.rooms[a["room"]]), ""
        elif name == "book":
            if not self._known:
                return "error not logged in", "permission"
            if not isinstance(a.get("seats", 1), int):
                return "error seats", "wrong_type"
            self._made += 1
            self.bookings[f"B{100 + self._made}"] = a["place"]
            return json.dumps({"booking": f"B{100 + self._made}"}), ""
        elif a["booking"] not in self.bookings:
            return f"error no booking {a['booking']}", "not_found"
        else:
            del self.bookings[a["booking"]]
        return "ok", ""


class HouseEnv(Environment):
    name, version, max_steps_per_turn, judges_abstention = "house", "1", 6, True

    def docs(self, task, turn):
        return tuple(doc for doc in DOCS if task.holdout.get(doc.name, 0) <= turn)

    def facts(self, tools):
        return ()

    def open(self, task):
        return House()


def call(name, **arguments):
    return Call(name, arguments)


LOGIN = call("login")
TASK = Task(
    "t",
    "house",
    "base",
    "s",
    "train",
    (
        UserTurn(
            "put the lamp into the attic and tell me what is there",
            (call("enter", room="attic"), call("put", thing="lamp")),
        ),
        UserTurn("do something nice"),
        UserTurn("book the opera", (LOGIN, call("book", place="opera"))),
        UserTurn("put the cup there too", (call("put", thing="cup"),)),
        UserTurn("cancel that booking and book the zoo", (call("cancel", booking="B101"), call("book", place="zoo"))),
    ),
    {},
    tuple(doc.name for doc in DOCS),
)
GOLD = [[(c,) for c in turn.gold] for turn in TASK.turns]


def judged(task, steps):
    """The verifier's rule, in short."""
    gold, ours, told, verdicts = House(), House(), Counter(), []
    for k, turn in enumerate(task.turns):
        wanted = Counter(gold.call(c).raw for c in turn.gold)
        made = [c for step in steps if step.turn == k for c in step.calls]
        told.update(ours.call(c).raw for c in made)
        state_ok, response_ok = gold.state() == ours.state(), not wanted - told
        verdicts.append(Verdict(k, state_ok, response_ok, state_ok and response_ok and bool(made or not turn.gold)))
    return verdicts


def played(changes, task=TASK, stop="finished", last=99):
    """Gold with other steps in some turns (a step: calls, or text that is no call); each turn ends explicitly."""
    house, steps = House(), []
    for k, turn in enumerate(task.turns[: last + 1]):
        script = changes.get(k, [(c,) for c in turn.gold])
        for i, said in enumerate([*script, ()] if k < last else script):
            if isinstance(said, str):
                steps.append(Step(k, i, said, errors=(CallError("syntax", ""),)))
            else:
                steps.append(Step(k, i, "", said, results=tuple(house.call(c) for c in said)))
    return Rollout("r", task.task_id, 0, 0, "off", "p", "bare", tuple(steps), stop)


def varied(**fields):
    return replace(TASK, **fields)


def labels(changes, task=TASK, **how):
    """{turn: [(label, detail) of the primary, of the others ...]} and the turns that are consequences."""
    rollout = played(changes, task, **how)
    rows = diagnose(HouseEnv(), task, rollout, judged(task, rollout.steps))
    found = {}
    for row in rows:
        found.setdefault(row.turn, []).append((row.label, row.detail))
    assert sorted(found) == list(range(len(task.turns)))
    assert [sum(row.primary for row in rows if row.turn == k) for k in found] == [1] * len(found)
    return found, sorted({row.turn for row in rows if not row.root})


def test_gold_passes_and_abstains():
    found, inherited = labels({})
    assert [found[k][0][0] for k in range(5)] == ["pass", "correct_abstention", "pass", "pass", "pass"]
    assert not inherited


@pytest.mark.parametrize(
    ("turn", "script", "label", "detail"),
    [
        (0, [(call("go", room="attic"),), (call("put", thing="lamp"),)], "invalid_tool_call", "unknown_tool"),
        (0, [(call("enter", room="attic"),), "put((lamp"], "invalid_tool_call", "syntax"),
        (0, [(call("enter", room="attic"),), (call("put"),)], "argument_mismatch", "missing_parameter"),
        (0, [(call("enter", room="attic"),), (call("put", thing=["lamp"]),)], "argument_mismatch", "type"),
        (0, [(call("enter", room="attic"),), (call("put", thing="lampx"),)], "argument_mismatch", "altered_literal"),
        (0, [(call("enter", room="atticx"),), (call("put", thing="lamp"),)], "argument_mismatch", "altered_literal"),
        (0, [(call("enter", room="attic"),)], "missing_tool_call", "too_few"),
        (0, [], "missing_tool_call", "no_call"),
        (2, [(call("book", place="opera"),)], "constraint_violation", "permission"),
        (2, [(call("book", place="opera"),), (LOGIN,)], "constraint_violation", "permission"),
        (1, [(call("look", room="hall"),)], "spurious_tool_call", "acted"),
        (1, [(call("wipe", room="attic"),)], "spurious_tool_call", "write"),
        (3, [(call("put", thing="cup"),), (call("wipe", room="attic"),)], "spurious_tool_call", "extra_call"),
        (3, [(call("put", thing="lamp"),)], "state_mismatch", "wrong_referent"),
        (3, [(call("wipe", room="attic"),)], "spurious_tool_call", "other_tool"),
        (4, [(call("cancel", booking="B101"),), (call("book", place="zoo", seats="2"),)], "argument_mismatch", "type"),
    ],
)  # fmt: skip
def test_primary_label(turn, script, label, detail):
    found, _ = labels({turn: script})
    assert found[turn][0] == (label, detail) or (label, detail) in found[turn] and found[turn][0][0] == label
    assert all(found[k][0][0] in ("pass", "correct_abstention") for k in range(turn))


@pytest.mark.parametrize("given", [1.0, 2.0, 1.5, "1"])
def test_a_number_is_of_the_wrong_type_where_the_executor_says_so(monkeypatch, given):
    """House refuses every float for an integer; one that reads 1.0 as JSON Schema does is not contradicted."""
    gold = (call("cancel", booking="B101"), call("book", place="zoo", seats=1))
    task = varied(turns=(*TASK.turns[:4], UserTurn("book the zoo", gold)))
    wrong = {4: [(gold[0],), (call("book", place="zoox", seats=given),)]}
    integral = isinstance(given, float) and given.is_integer()
    assert ("argument_mismatch", "type") in labels(wrong, task)[0][4]
    strict = House._run

    def lenient(self, name, a):
        seats = a.get("seats")
        return strict(self, name, {**a, "seats": int(seats)} if isinstance(seats, float) and integral else a)

    monkeypatch.setattr(House, "_run", lenient)
    assert (("argument_mismatch", "type") in labels(wrong, task)[0][4]) == (not integral)


def test_an_error_repeated_ignored_given_up_or_repaired():
    bad, rest = (call("put"),), (call("put", thing="lamp"),)
    enter = (call("enter", room="attic"),)
    assert ("recovery_failure", "repeated") in labels({0: [enter, bad, bad]})[0][0]
    assert ("recovery_failure", "ignored") in labels({0: [(call("enter"),), rest]})[0][0]
    assert ("recovery_failure", "gave_up") in labels({0: [enter, bad]})[0][0]
    assert labels({0: [enter, bad, rest]})[0][0] == [("pass", "recovered")]
    assert labels({0: [enter, "put((", rest]})[0][0] == [("pass", "recovered")]


def test_a_stale_id_that_is_refused_is_a_failure_to_recover_from_a_wrong_referent():
    task = varied(turns=(*TASK.turns, UserTurn("cancel the zoo", (call("cancel", booking="B102"),))))
    found, _ = labels({5: [(call("cancel", booking="B101"),)]}, task)
    assert found[5][0] == ("recovery_failure", "gave_up")
    assert ("state_mismatch", "wrong_referent") in found[5]


def test_order_of_calls():
    two = (UserTurn("wipe the hall, put a cup into the hall", (call("wipe", room="hall"), call("put", thing="cup"))),)
    task = Task("o", "house", "base", "s", "train", two, {}, ())
    found, _ = labels({0: [(two[0].gold[1],), (two[0].gold[0],)]}, task)
    assert found[0] == [("state_mismatch", "order")]
    two = (UserTurn("put a cup into the hall and look", (call("put", thing="cup"), call("look", room="hall"))),)
    found, _ = labels(
        {0: [(two[0].gold[1],), (two[0].gold[0],)]}, Task("o", "house", "base", "s", "train", two, {}, ())
    )
    assert found[0] == [("response_mismatch", "order")]


def test_later_right_turns_are_consequences():
    found, inherited = labels({0: [(call("enter", room="attic"),), (call("put", thing="lampx"),)]})
    assert inherited == [1, 2, 3, 4]
    assert all(found[k] == [("state_mismatch", "inherited")] for k in inherited)


def test_an_independent_second_fault_stays_root():
    found, inherited = labels({0: [], 2: [(LOGIN,), (call("book"),)]})
    assert found[0][0][0] == "missing_tool_call" and found[2][0] == ("argument_mismatch", "missing_parameter")
    assert 2 not in inherited and {1, 3, 4} <= set(inherited)


def test_a_fault_that_shows_only_later_is_found_where_it_was_made():
    """Nobody said to be somewhere else in turn 1, but turn 3 puts the cup where the policy then is."""
    there = UserTurn("go to the hall", (call("look", room="hall"), call("enter", room="hall")))
    quiet = varied(turns=(*TASK.turns[:1], there, *TASK.turns[2:]))
    looked = [
        (call("look", room="hall"),),
        (call("enter", room="attic"),),
        (call("enter", room="hall"),),
        (call("enter", room="attic"),),
    ]
    found, inherited = labels({1: looked}, quiet)
    assert found[1][0][0] in FAILURES and found[3] == [("state_mismatch", "inherited")]
    assert inherited == [3, 4]


def test_ids_that_shifted_are_no_fresh_fault():
    """An extra booking shifts ids; cancelling the id one was really given is right work."""
    extra = [(LOGIN,), (call("book", place="bar"),), (call("book", place="opera"),)]
    found, inherited = labels({2: extra, 4: [(call("cancel", booking="B102"),), (call("book", place="zoo"),)]})
    assert found[2][0] == ("spurious_tool_call", "extra_call")
    assert inherited == [3, 4]


def test_work_that_fits_the_inherited_state_is_no_fresh_fault():
    """Left in the hall by mistake, the policy goes to the attic itself before it puts the cup there."""
    found, inherited = labels(
        {0: [(call("put", thing="lamp"),)], 3: [(call("enter", room="attic"),), (call("put", thing="cup"),)]}
    )
    assert found[0][0][0] == "missing_tool_call" and 3 in inherited


def test_an_early_call_is_spurious_and_silence_after_it_is_missing():
    book = [(LOGIN,), (call("book", place="opera"),)]
    found, _ = labels({1: book, 2: []})
    assert found[1][0][0] == "spurious_tool_call" and found[2][0] == ("missing_tool_call", "no_call")
    held = varied(holdout={"book": 2})
    assert ("spurious_tool_call", "withheld_tool") in labels({1: book}, held)[0][1]


def test_budget_ends_and_turns_never_reached():
    look = [(call("look", room="hall"),)] * 6
    found, inherited = labels({2: look}, stop="step_limit", last=2)
    assert found[2][0] == ("budget_exhausted", "step_limit") and inherited == [3, 4]
    assert found[4] == [("budget_exhausted", "not_reached")]
    found, _ = labels({4: [*GOLD[4], *look[:3]]}, stop="step_limit", last=4)
    assert found[4] == [("pass", "")], "in the last turn nothing was lost by it"
    found, _ = labels({2: GOLD[2]}, stop="step_limit", last=2)
    assert found[2] == [("budget_exhausted", "step_limit")], "valid, but the turns after it were lost here"


def test_what_is_not_the_policys_fault():
    rollout = played({2: []}, stop="env_error", last=2)
    rows = diagnose(HouseEnv(), TASK, rollout, judged(TASK, rollout.steps))
    assert [(row.label, row.root) for row in rows if row.primary][2:] == [
        ("env_error", True),
        ("env_error", False),
        ("env_error", False),
    ]
    assert [row.label for row in diagnose(HouseEnv(), TASK, played({}), judged(TASK, played({}).steps)[:-1])][
        -1
    ] == "checker_error"
    bad = varied(known_bad="ambiguous")
    found, _ = labels({3: []}, bad)
    assert found[3][0][0] == "gold_error" and found[0][0][0] == "pass"


def test_priority():
    findings = [
        Finding(Label.STATE_MISMATCH),
        Finding(Label.INVALID_TOOL_CALL, confidence=0.4),
        Finding(Label.MISSING_TOOL_CALL),
    ]
    assert primary(findings) == 2, "an unsure finding is primary only where nothing else is"
    assert primary(findings, parse_priority(["state_mismatch"])) == 0
    assert primary(findings[1:2]) == 0
    assert primary([*findings, Finding(Label.ENV_ERROR)]) == 3
    assert set(parse_priority(["response_mismatch"])) == set(DEFAULT_PRIORITY)
    for wrong in (["pass"], ["state_mismatch", "state_mismatch"]):
        with pytest.raises(ParamError):
            parse_priority(wrong)
