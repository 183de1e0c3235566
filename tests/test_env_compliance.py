"""The built-in document review: its rules and how they differ from the shop's, its words, who passes it."""

import hashlib
from collections import Counter

import pytest

from seal.core.types import Call
from seal.env.compliance import COMPLIANCE, ComplianceEnv
from seal.env.domain import facts_of
from seal.env.shop import SHOP, ShopEnv
from seal.policy.reader import noted_docs, rules_of
from seal.policy.scripted import FaultyPolicy, GoldPolicy
from seal.policy.words import UNK, WordCodec, build_vocabulary
from seal.rollout.engine import Request, play
from seal.verify.rollout import success
from seal.verify.turns import verify

ENV = ComplianceEnv()


def hidden(domain):
    """How many facts of each kind the bare docs do not tell; a word and its code are one."""
    counts = Counter()
    for fact in (fact for tool in domain.tools for fact in facts_of(tool) if not fact.documented):
        counts[fact.kind] += len(fact.value) if fact.kind == "enum" else 1
    return counts


def words_and_codes(domain):
    return {pair for tool in domain.tools for parameter in tool.parameters for pair in parameter.choices.items()}


def solved(policy, tasks):
    played = play(ENV, policy, [Request(task.task_id, task, 0, seed) for seed, task in enumerate(tasks)])
    return [
        success(task, verify(ENV, task, rollout.calls_by_turn(len(task.turns))), rollout)
        for task, rollout in zip(tasks, played, strict=True)
    ]


def test_it_differs_from_the_shop_in_kind():
    ours, shop = hidden(COMPLIANCE), hidden(SHOP)
    assert ours == {"enum": 24, "format": 7, "needs": 3, "role": 2, "returns": 1} and len(COMPLIANCE.tools) == 16
    assert ours["enum"] / ours.total() < 0.7 < shop["enum"] / shop.total()
    assert all(ours[kind] >= shop[kind] for kind in ("format", "needs", "role", "returns"))
    assert not words_and_codes(COMPLIANCE) & words_and_codes(SHOP)


def test_a_prefix_belongs_to_a_kind_of_record():
    kinds = {parameter.entity: set() for tool in COMPLIANCE.tools for parameter in tool.parameters if parameter.entity}
    for tool in COMPLIANCE.tools:
        kinds[tool.parameters[0].entity].add(tool.parameters[0].prefix)
    assert all(len(prefixes) == 1 for prefixes in kinds.values()) and len(kinds) == 5
    assert len(set.union(*kinds.values()) - {""}) == 3


def test_a_sign_off_takes_extract_map_and_run():
    turns = [turn for task in ENV.tasks() for turn in task.turns if turn.gold and turn.gold[-1].name == "sign_off"]
    programs = [tuple(call.name for call in turn.gold) for turn in turns]
    whole = ("extract_table", "map_field", "run_rule", "sign_off")
    assert programs.count(whole) > len(programs) / 2 and len(programs) > 10
    assert all(list(program) == [name for name in whole if name in program] for program in programs)  # in this order


def test_its_gold_programs_are_longer_than_the_shops():
    lengths = [[len(turn.gold) for task in env.tasks() for turn in task.turns] for env in (ENV, ShopEnv())]
    ours, shop = (sum(n > 2 for n in found) / sum(n > 0 for n in found) for found in lengths)
    assert ours > 0.1 and shop == 0


def test_an_id_that_only_a_lookup_tells_is_what_other_tools_take():
    task = next(t for t in ENV.tasks() if t.turns[-1].gold and t.turns[-1].gold[-1].name == "sign_off")
    named = next(iter(task.initial_state["entities"]["document"]))
    session = ENV.open(task)
    assert session.call(Call("map_field", {"invoice": named})).error_kind == "not_found"
    told = session.call(Call("extract_table", {"document": named})).raw.split()
    assert told[:2] == ["ok", "invoice="]
    steps = [session.call(Call(name, {"invoice": told[2]})) for name in ("run_rule", "map_field", "run_rule")]
    assert [step.error_kind for step in steps] == ["precondition", "", ""]
    assert session.call(Call("sign_off", {"invoice": told[2], "level": "K9"})).error_kind == ""
    assert session.state()["sign_off"] == {told[2]: {"level": "K9"}}


@pytest.mark.parametrize(
    ("kind", "call", "text"),
    [
        ("contract", Call("scan_document", {"contract": "{id}"}), "error invalid contract="),
        ("contract", Call("scan_document", {"contract": "TX-{id}"}), "error invalid contract="),
        ("document", Call("set_currency", {"document": "REF-{id}", "currency": "K1"}), "error not found document="),
        ("document", Call("set_currency", {"document": "{id}", "currency": "euro"}), "error invalid currency="),
        ("document", Call("file_report", {"document": "{id}", "kind": "K7"}), "error denied"),
        ("account", Call("freeze_account", {"account": "AC-{id}", "period": "K2"}), "error denied"),
        ("invoice", Call("sign_off", {"invoice": "{id}", "level": "K4"}), "error refused"),
        ("payment", Call("flag_payment", {"payment": "TX-{id}", "reason": "K9"}), "error invalid reason="),
    ],
)
def test_each_rule_refuses_in_its_own_words(kind, call, text):
    task = ENV.tasks()[0]
    id_ = next(iter(task.initial_state["entities"][kind]))
    session = ENV.open(task)
    result = session.call(Call(call.name, {name: value.format(id=id_) for name, value in call.arguments.items()}))
    assert result.raw == text and result.error_kind and session.state() == {}


def test_it_uses_the_words_the_shipped_reader_knows_and_no_others():
    """Positions in the vocabulary are token ids of the shipped weights: another order is another reader."""
    vocabulary = build_vocabulary()
    digest = hashlib.sha256("\n".join(vocabulary).encode()).hexdigest()
    assert digest == "3ea78d0225be3cb8f9d0f01e1fdd8b4e907ba69c6fa9b0e1c878bd38aacb8eab"
    codec, rules = WordCodec(vocabulary), set(rules_of(COMPLIANCE))
    for filler in COMPLIANCE.fillers:
        assert UNK not in codec.encode(filler)
    assert UNK not in codec.prompt(noted_docs(COMPLIANCE, [tool.name for tool in COMPLIANCE.tools], rules), ())


def test_gold_passes_everything_and_doing_nothing_nothing():
    assert all(solved(GoldPolicy(), ENV.tasks()))
    for task in ENV.tasks():
        assert not all(verdict.valid for verdict in verify(ENV, task, [[] for _ in task.turns]))


def test_faults_cost():
    tasks = [task for task in ENV.tasks() if task.split == "test"]
    rates = [sum(solved(FaultyPolicy(rate), tasks)) / len(tasks) for rate in (0.0, 0.3, 1.0)]
    assert rates[0] == 1.0 > rates[1] > 0.4 > 0.2 > rates[2]
