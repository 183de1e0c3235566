"""The nano policy's words and demonstrations: no word of a built-in domain is unknown, and demonstrations are right."""

import random

import pytest

from seal.core.types import Note, ToolDoc
from seal.env.compliance import ComplianceEnv
from seal.env.lexicon import CODES
from seal.env.procedural import random_domain
from seal.env.shop import SHOP, ShopEnv
from seal.policy.optim import padded
from seal.policy.pretrain import examples
from seal.policy.reader import demonstration, noted_docs, rules_of
from seal.policy.words import END, UNK, WordCodec, build_vocabulary

CODEC = WordCodec(build_vocabulary())


@pytest.mark.parametrize("make", [ShopEnv, ComplianceEnv])
def test_every_word_of_a_built_in_domain_is_known(make):
    env = make()
    for task in env.tasks():
        docs = noted_docs(env.domain, task.toolset, set(rules_of(env.domain)))
        ids = CODEC.prompt(docs, ()) + [i for turn in task.turns for i in CODEC.user(turn.message, ())]
        session = env.open(task)
        for call in (call for turn in task.turns for call in turn.gold):
            text = " ".join([call.name, *(f"{k}={v}" for k, v in call.arguments.items())])
            ids += CODEC.encode_action(text) + CODEC.results([session.call(call).raw])
            assert CODEC.decode(CODEC.encode_action(text)) == text
        assert UNK not in ids


def test_a_tools_note_stands_before_its_name():
    doc = ToolDoc("issue_refund", "refund", (), (Note("", "after verify_buyer"),))
    assert CODEC.prompt([doc], ()) == CODEC.encode("<tool> refund after verify_buyer issue_refund")


def test_demonstrations_end_every_turn_know_every_word_and_train_no_wrong_code():
    rng = random.Random(1)
    for _ in range(300):
        ids, mask = demonstration(rng, CODEC, 3, 4)
        assert len(ids) == len(mask) <= 400
        assert UNK not in ids
        assert (ids[-1], mask[-1]) == (END, 1)


def test_an_untrained_action_is_always_followed_by_an_error():
    rng, result = random.Random(2), CODEC.encode("<res> error")[1]
    for _ in range(200):
        ids, mask = demonstration(rng, CODEC, 2, 4)
        for i, token in enumerate(ids[:-2]):
            if token == END and not mask[i]:
                assert ids[i + 2] == result


def test_random_domains_share_no_fact_with_the_shop_beyond_chance():
    shop = {(word, code) for tool in SHOP.tools for p in tool.parameters for word, code in p.choices.items()}
    rng, same, seen = random.Random(3), 0, 0
    for _ in range(400):
        for tool in random_domain(rng).tools:
            for parameter in tool.parameters:
                for word, code in parameter.choices.items():
                    if word in {w for w, _ in shop}:
                        seen, same = seen + 1, same + ((word, code) in shop)
    assert 0.5 / len(CODES) < same / seen < 2 / len(CODES)


def test_batches_are_a_function_of_their_step():
    assert examples(700, CODEC) == examples(700, CODEC)
    ids, mask = padded(examples(3, CODEC))
    assert ids.shape == mask.shape
