"""Cues reworded by a model behind an endpoint: asked once, guarded, never in the way of a cue's identity."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seal.core.errors import DependencyError, ParamError
from seal.core.types import Call, Fact, Param, Task, ToolDoc, UserTurn
from seal.evolve.evidence import Evidence
from seal.evolve.guard import guard_for
from seal.evolve.paraphrase import paraphrase
from seal.evolve.rewording_model import rewriter
from seal.evolve.selection import Reader, evolve
from seal.interface.state import InterfaceState, Item
from seal.settings.evolve import EvolveParams, RewriteParams

FACTS = (Fact("refund", "", "needs", ["verify"]), Fact("refund", "reason", "enum", {"late": "K1"}))
DOCS = (ToolDoc("refund", "give money back", (Param("reason"),)), ToolDoc("verify", "check the buyer", ()))
TASK = Task(
    "t", "e", "base", "s", "train", (UserTurn("refund zanzibar", (Call("refund", {"reason": "K1"}),)),), {}, ("refund",)
)
PROFILE = [{"category": "base", "tool": "refund", "parameter": "", "label": "constraint_violation", "n": 5, "rate": 1}]
GUARD = guard_for(FACTS, DOCS, [TASK])
NEEDS = Item("needs", "refund", "docs", "after verify", "constraint_violation", "r1")


@contextmanager
def served(answer):
    """A chat server that always says `answer`; yields (url, the requests it got)."""
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            body = json.dumps({"choices": [{"message": {"content": answer}}]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    ("answer", "taken"),
    [
        ("Use this tool only after verify.", True),
        ("Call refund only after verify.", True),
        ("Call refund first.", False),  # loses verify
        ("Call refund after verify for zanzibar.", False),  # a word of a task
        ("Hurry: refund after verify!", False),  # a word without a source
        ("Use this tool only\nafter verify.", False),  # two lines
        ("after verify", False),  # the same
        ("", False),
    ],
)
def test_a_rewording_keeps_what_is_said_and_adds_nothing(answer, taken):
    assert paraphrase(NEEDS, lambda item: answer, GUARD) == (answer if taken else "")


SHOP = (
    Fact("refund", "", "needs", ["verify"]),
    Fact("refund", "reason", "enum", {"late": "K7", "damaged": "K3"}),
    Fact("refund", "order", "format", "ORD-"),
    Fact("find", "", "returns", ["shipment"]),
)
SHOP_DOCS = (
    ToolDoc("refund", "give money back, never or before, not to no one", (Param("reason"), Param("order"))),
    ToolDoc("verify", "check", ()),
    ToolDoc("find", "find", ()),
)
ENUM = Item("enum", "refund.reason", "docs", "damaged K3 late K7", "", "")
FORMAT = Item("format", "refund.order", "docs", "starts ORD-", "", "")
RETURNS = Item("returns", "find", "docs", "returns shipment=", "", "")


@pytest.mark.parametrize(
    ("item", "answer", "taken"),
    [
        (ENUM, "Give damaged as K3 and late as K7.", True),
        (ENUM, "For the reason of refund: damaged K3, late K7.", True),
        (ENUM, "Give K7 for damaged and K3 for late.", False),
        (ENUM, "Give damaged K7 and late K3.", False),
        (ENUM, "damaged k3 late k7 only", False),
        (ENUM, "damaged not K3 late K7", False),
        (ENUM, "damaged != K3 late K7", False),
        (ENUM, "damaged: K3, late: K7 (refund.reason)", True),
        (NEEDS, "Call refund only after verify.", True),
        (NEEDS, "Never call verify; call refund before verify.", False),
        (NEEDS, "Never call refund after verify.", False),
        (NEEDS, "Call refund or verify after verify", False),
        (NEEDS, "Call after refund verify.", False),
        (NEEDS, "verify", False),
        (NEEDS, "Verify after refund.", False),
        (FORMAT, "The value starts with ORD-.", True),
        (FORMAT, "starts with `ORD-`", True),
        (FORMAT, "starts with ord", False),
        (FORMAT, "starts with ORD", False),
        (RETURNS, "This tool returns the shipment=", True),
        (RETURNS, "This tool returns the shipment", False),
    ],
)
def test_a_rewording_turns_nothing_round(item, answer, taken):
    """Not even in words that docs hold: their own `never` and `before` are no words of this cue."""
    guard = guard_for(SHOP, SHOP_DOCS, [])
    assert paraphrase(item, lambda item: answer, guard) == (answer if taken else "")


@given(st.lists(st.sampled_from([*"xyz", "X", "the", "not", "only", "refund", "y."]), min_size=3, max_size=7))
def test_a_rewording_holds_the_words_of_the_cue_in_their_order(words):
    guard = guard_for((Fact("refund", "", "purpose", "x y z X not"),), ())
    said = paraphrase(Item("purpose", "refund", "docs", "x y X", "", ""), lambda _: " ".join(words), guard)
    assert not said or [word.strip(".") for word in words if word not in ("the", "only", "refund")] == ["x", "y", "X"]


def test_templates_are_not_reworded():
    template = Item("recover_any", "missing_argument", "feedback", "add the required {missing}", "", "")
    assert paraphrase(template, lambda item: pytest.fail("asked"), GUARD) == ""


def next_state(parent, profile, round_id, rewrite, **params):
    evidence = Evidence(profile, FACTS, docs=DOCS, tasks=[TASK])
    return evolve(parent, evidence, EvolveParams(**params), round_id, Reader(rewrite=rewrite))


def test_a_reworded_cue_is_the_same_cue_in_later_rounds(tmp_path):
    with served("Call refund only after verify.") as (url, asked):
        rewrite = rewriter(RewriteParams(url=url, model="m", cache=str(tmp_path)))
        first, rows = next_state(InterfaceState(), PROFILE, "r1", rewrite)
        assert [row["text"] for row in rows] == ["Call refund only after verify."]
        second, rows = next_state(first, PROFILE, "r2", rewrite)
        assert [(row["action"], row["reason"]) for row in rows] == [("keep", "still failing")]
        third, _ = next_state(second, [], "r3", rewrite)
        fourth, rows = next_state(third, [], "r4", rewrite)
        assert [row["action"] for row in rows] == ["retire"] and not fourth.active
        fifth, rows = next_state(fourth, PROFILE, "r5", rewrite)
        assert [row["reason"] for row in rows] == ["failing again"] and len(fifth.items) == 1
        assert len(asked) == 1, "the answer is kept"
        harm = [{"item": fifth.active[0].id, "uplift": -0.3, "low": -0.5, "high": -0.1, "tasks": 9}]
        sixth, _ = evolve(
            fifth, Evidence(PROFILE, FACTS, uplifts=harm, docs=DOCS), EvolveParams(), "r6", Reader(rewrite=rewrite)
        )
        assert not sixth.active and not next_state(sixth, PROFILE, "r7", rewrite)[0].active


def test_a_rewording_over_the_budget_is_left_out():
    def long(item):
        return "Call refund only after verify."

    state, _ = next_state(InterfaceState(), PROFILE, "r1", long, token_budget=3)
    assert [item.text for item in state.active] == ["after verify"]


def test_no_model_is_no_rewriting_and_no_answer_is_an_error(tmp_path, monkeypatch):
    assert rewriter(RewriteParams()) is None
    with pytest.raises(ParamError, match="begins with http"):
        rewriter(RewriteParams.model_construct(url="ftp://x", cache=str(tmp_path)))(NEEDS)
    for params, match in (
        (RewriteParams(url="http://127.0.0.1:9/v1", cache=str(tmp_path), seconds=1), r"evolve\.rewrite"),
        (RewriteParams(url="http://127.0.0.1:9/v1", key_env="NO_SUCH_KEY", cache=str(tmp_path)), "NO_SUCH_KEY"),
    ):
        with pytest.raises(DependencyError, match=match):
            rewriter(params)(NEEDS)
