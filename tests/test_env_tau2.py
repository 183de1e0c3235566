"""tau2's tasks, tools and sessions: counts, splits, wording, isolation, and states that are what the hash says."""

import ast
import subprocess
import sys
import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tau2_cases import ARMS, CASES, COUNTS, env, mutants, task

from seal.core.errors import ParamError
from seal.core.types import Call
from seal.env import load_env
from seal.env.tau2 import Tau2Env
from seal.env.tau2.bounds import TIMED_OUT, refusal
from seal.env.tau2.environments import new_environment, state_of
from seal.env.tau2.package import DOMAINS, module, root
from seal.env.tau2.records import as_json
from seal.env.tau2.session import ENDED
from seal.env.tau2.user import GO_ON, STOP, ScriptedUser, calls_in
from seal.tools.parse import call_text

TOOLS = {"retail": 15, "airline": 14, "telecom": 13}
SPLITS = {"retail": (60, 14, 40), "airline": (24, 6, 20), "telecom": (60, 14, 40)}


def test_tasks_and_splits():
    every = load_env("tau2")
    assert every.version and Counter(one.category for one in every.tasks()) == COUNTS
    assert len({one.task_id for one in every.tasks()}) == 278 and every.tasks() is every.tasks()
    for domain, sizes in SPLITS.items():
        found = Counter(one.split for one in every.tasks() if one.category == domain)
        assert (found["train"], found["dev"], found["test"]) == sizes
    assert [one.task_id for one in env("retail").tasks()] == [f"retail_{i}" for i in range(114)]


@pytest.mark.parametrize(("domain", "user"), ARMS)
def test_gold_calls_name_listed_tools_and_their_parameters(domain, user):
    assert Tau2Env(domain=domain, user=user).tasks() == env(domain, user).tasks()
    for one in env(domain, user).tasks():
        docs = {doc.name: {param.name for param in doc.params} for doc in env(domain, user).docs(one, 0)}
        assert tuple(docs) == one.toolset and len(one.turns) == 1
        assert len(docs) == TOOLS[domain] + (31 if user == "solo" else 1)
        for call in one.turns[0].gold:
            assert set(call.arguments) <= docs[call.name], call


def test_docs_and_facts_are_the_official_ones():
    docs = {doc.name: doc for doc in env("airline").docs(env("airline").tasks()[0], 0)}
    cabin = next(param for param in docs["book_reservation"].params if param.name == "cabin")
    assert (cabin.type, cabin.required, cabin.enum) == ("string", True, ("business", "economy", "basic_economy"))
    types = {param.name: param.type for param in docs["book_reservation"].params}
    assert (types["flights"], types["total_baggages"]) == ("array", "integer")
    solo = {doc.name: doc for doc in env("telecom", "solo").docs(env("telecom", "solo").tasks()[0], 0)}
    assert "respond" not in solo and "done" in solo and "toggle_roaming" in solo
    facts = env("airline").facts(["book_reservation"])
    assert all(fact.documented and fact.tool == "book_reservation" for fact in facts)
    assert {fact.param for fact in facts if fact.kind == "enum"} == {"cabin", "flight_type", "insurance"}


def test_messages_and_policies():
    assert task("retail", "0").turns[0].message.count("#W2378156") == 1
    telecom = env("telecom").tasks()[0]
    assert "toggle_roaming()" in telecom.turns[0].message and "toggle_roaming()" not in str(telecom.initial_state)
    solo = env("telecom", "solo").tasks()[0]
    assert solo.turns[0].message.startswith("The user") and solo.turns[0].gold[-1] == Call("done", {})
    policies = [env(domain).guidance(env(domain).tasks()[0])[0] for domain in DOMAINS]
    assert [len(policy) // 100 for policy in policies] == [66, 76, 233]


@pytest.mark.parametrize("options", [{"domain": "bank"}, {"user": "solo"}, {"user": "x"}, {"user": "endpoint"}])
def test_options_are_checked(options):
    with pytest.raises(ParamError):
        Tau2Env(**options)


def test_short_names():
    assert len(load_env("tau2:retail").tasks()) == 114
    assert load_env("tau2:solo").tasks() == env("telecom", "solo").tasks()


@pytest.mark.parametrize(("domain", "user", "n"), [(*ARMS[0], 3), (*ARMS[1], 2), (*ARMS[2], 20), (*ARMS[3], 5)])
def test_results_are_the_official_ones(domain, user, n):
    """Against the stock environment, its databases loaded from their files."""
    make = module(f"domains.{domain}.environment").get_environment
    models, messages = module("data_model.tasks"), module("data_model.message")
    for one in env(domain, user).tasks()[:n]:
        session, stock = env(domain, user).open(one), make(solo_mode=user == "solo")
        initial = models.InitialState.model_validate(one.initial_state["initial"] or {})
        stock.set_state(initial.initialization_data, initial.initialization_actions, [])
        for call in one.turns[0].gold:
            if call.name in ("respond", "done"):
                for asked in calls_in(call.arguments.get("content", ""), env("telecom").open(one)._user.tools):
                    stock.get_response(messages.ToolCall(name=asked.name, arguments=asked.arguments, requestor="user"))
                session.call(call)
                continue
            answer = stock.get_response(messages.ToolCall(name=call.name, arguments=dict(call.arguments)))
            result = session.call(call)
            assert (result.raw, bool(result.error_kind)) == (answer.content, answer.error)


def test_no_session_changes_another():
    """Gold conversations write everywhere; afterwards the shared databases are those of the files, to the byte."""
    for domain, user in ARMS:
        for one in env(domain, user).tasks()[:40]:
            session = env(domain, user).open(one)
            for call in one.turns[0].gold:
                session.call(call)
    fresh = module("domains.retail.data_model").RetailDB.load(module("domains.retail.utils").RETAIL_DB_PATH)
    shared = new_environment("retail", None).tools.db
    assert {name: dict(table) for name, table in fresh} == {name: dict(table) for name, table in shared}
    assert not state_of(new_environment("airline", None)) and not state_of(new_environment("telecom", None))


def test_start_states_are_copies():
    one = next(one for one in env("telecom").tasks() if one.turns[0].gold[0].name != "respond")
    first, second = env("telecom").open(one), env("telecom").open(one)
    before = second.state()
    for call in one.turns[0].gold:
        first.call(call)
    assert first.state() != before == second.state() == env("telecom").open(one).state()


def test_the_tools_walk_over_tables_only_to_read():
    """Records handed out by a walk are shared: the installed tools may do so in these functions alone."""
    walks = set()
    for domain in ("retail", "airline"):
        tree = ast.parse((root() / "domains" / domain / "tools.py").read_text())
        for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
            for node in ast.walk(function):
                walk = isinstance(node, ast.Attribute) and node.attr in ("values", "items", "pop", "copy", "update")
                if walk and ast.unparse(node.value).startswith("self.db."):
                    walks.add(function.name)
    assert walks == {
        "find_user_id_by_name_zip",
        "find_user_id_by_email",
        "list_all_product_types",
        "_search_direct_flight",
    }


@given(seed=st.integers(0, 10_000))
@settings(max_examples=4, deadline=None)
def test_states_are_equal_where_the_official_hashes_are(seed):
    environment, sessions = env("retail"), []
    (one, calls), *_ = mutants(environment.tasks(), 1, seed)
    for said in (one.turns[0].gold, calls):
        sessions.append(environment.open(one))
        for call in said:
            sessions[-1].call(call)
    hashes = [as_json(session.environment.tools.db) for session in sessions]
    assert (sessions[0].state() == sessions[1].state()) == (hashes[0] == hashes[1])
    assert sessions[0].environment.get_db_hash() == sessions[0].environment.tools.db.get_hash()


def test_a_number_and_its_float_differ_as_officially():
    one = task("retail", "0")
    first, second = env("retail").open(one), env("retail").open(one)
    order = "#W2378156"
    for session, amount in ((first, 5), (second, 5.0)):
        session.environment.tools.db.orders[order].payment_history[0].amount = amount
    assert first.state().keys() == second.state().keys() == {f"tools/orders/{order}"}
    assert first.state() != second.state()
    assert first.environment.get_db_hash() != second.environment.get_db_hash()


def test_arguments_stay_the_callers():
    one = next(t for t in env("airline").tasks() if any(c.name == "book_reservation" for c in t.turns[0].gold))
    call = next(call for call in one.turns[0].gold if call.name == "book_reservation")
    before, session = str(call.arguments), env("airline").open(one)
    for made in one.turns[0].gold:
        session.call(made)
    kept = session.environment.tools.db.reservations["HATHAT"].passengers
    assert str(call.arguments) == before and kept is not call.arguments["passengers"]


def test_errors_are_told_by_kind():
    session = env("retail").open(task("retail", "0"))
    kinds = [
        session.call(Call(name, arguments)).error_kind
        for name, arguments in (
            ("no_such_tool", {}),
            ("toggle_roaming", {}),
            ("update_db", {}),
            ("get_order_details", {"order_id": "#W0"}),
            ("get_order_details", {}),
            ("get_order_details", {"order_id": "#W0", "tool_name": "x"}),
            ("respond", {}),
            ("respond", {"content": 3}),
        )
    ]
    assert kinds[:3] == ["unknown_tool"] * 3 and kinds[3:5] == ["not_found", "missing_argument"]
    assert kinds[5] and kinds[6:] == ["missing_argument", "wrong_type"]


def test_ten_errors_end_a_conversation():
    session = env("retail").open(task("retail", "0"))
    for _ in range(9):
        session.call(Call("no_such_tool", {}))
    assert not session.stop_reason
    session.call(Call("no_such_tool", {}))
    assert (session.stop_reason, session.ending) == ("finished", "too_many_errors")
    assert session.call(Call("list_all_product_types", {})).raw == ENDED


@pytest.mark.parametrize("expression", ["9**9**9", "(9**99)**99*0", "10**400/10**399", "1+" * 2000 + "1"])
def test_arithmetic_that_would_not_end_is_an_error(expression):
    started = time.monotonic()
    result = env("retail").open(task("retail", "0")).call(Call("calculate", {"expression": expression}))
    assert time.monotonic() - started < CASES["exec_power_dos"]["expected"]["within_seconds"]
    assert (result.raw, result.error_kind) == (f"Error: {TIMED_OUT}", "timeout")


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("2 ** 10 - 24", "1000.0"),
        ("1000 * (1 + 0.05/12)**(12 * 2)", "1104.94"),
        ("-(3 // 2) + (-8)**2", "63.0"),
        ("1/0", "Error: division by zero"),
        ("2 +", "Error: invalid syntax (<string>, line 1)"),
        ("__import__", "Error: Invalid characters in expression"),
    ],
)
def test_other_arithmetic_is_the_tools_own(expression, told):
    assert not refusal("calculate", {"expression": expression})
    assert env("retail").open(task("retail", "0")).call(Call("calculate", {"expression": expression})).raw == told


def test_the_scripted_user_does_what_is_written_and_no_more():
    done = []
    user = ScriptedUser(("toggle_roaming", "grant"))
    act = lambda call: done.append(call) or "ok"  # noqa: E731
    text = (
        "Please toggle_roaming() and then grant(app='messaging', on=True). Not reboot() nor grant(x=__import__('os'))."
    )
    assert user.answer(text, act) == "toggle_roaming: ok\ngrant: ok"
    assert done == [Call("toggle_roaming", {}), Call("grant", {"app": "messaging", "on": True})]
    assert user.answer("Shall I go on?", act) == GO_ON and user.answer("toggle_roaming please.", act) == STOP
    assert len(done) == 2


@given(name=st.from_regex(r"[a-z_]{1,20}", fullmatch=True), value=st.booleans() | st.integers() | st.from_regex(r"\w*"))
def test_a_written_call_is_read_back(name, value):
    call = Call(name, {"x": value})
    assert calls_in(f"Please do:\n{call_text(call)}\n", {name}) in ([call], [])


def test_an_answer_ends_the_conversation_unless_it_was_a_question():
    session = env("airline").open(task("airline", "0"))
    asked = session.call(session.message_call("May I cancel it?"))
    assert asked.shown == GO_ON and GO_ON in asked.raw and not session.stop_reason
    told = session.call(session.message_call("No."))
    assert (told.shown, session.stop_reason, session.ending) == ("", "finished", "user_stop")
    assert session.messages == ["May I cancel it?", "No."]


def test_light_import():
    """No litellm, no network library, nothing on standard error."""
    code = (
        "import sys; from seal.env import load_env; env = load_env('tau2:airline'); t = env.tasks()[0];"
        "s = env.open(t); s.call(t.turns[0].gold[0]); s.state(); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"litellm", "torch", "tau2.registry", "tau2.run", "redis"} & set(done.stdout.split()) and not done.stderr
