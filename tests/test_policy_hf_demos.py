"""Demonstrations: the gold programs of the shop, in two codecs, and what a policy does with the same segments."""

from dataclasses import replace

import pytest
import torch
from test_policy_chat import CHATML, byte_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from seal.core.errors import ParamError
from seal.env.shop import ShopEnv
from seal.policy.base import Limits
from seal.policy.chat import ChatCodec
from seal.policy.demonstrations import demonstrations
from seal.policy.hf import HFPolicy
from seal.policy.words import WordCodec, build_vocabulary
from seal.rollout.engine import Request, play
from seal.settings.policies import HfParams
from seal.tools.parse import parse

ENV = ShopEnv()
TASKS = [task for task in ENV.tasks() if task.split == "train"][:6]
TOKENIZER = byte_tokenizer(CHATML, "<|im_end|>")
CODECS = {"words": WordCodec(build_vocabulary()), "chat": ChatCodec(TOKENIZER)}


def actions(demonstration, codec):
    """Texts of the trained spans; an end marker closes each."""
    spans, span = [], []
    ends = {codec.encode_action("")[-1]}
    for token, trained in zip(*demonstration, strict=True):
        assert trained or not span
        if trained:
            span.append(token)
            if token in ends:
                spans.append(codec.decode(span))
                span = []
    assert not span
    return spans


@pytest.mark.parametrize("name", CODECS)
def test_the_trained_spans_are_the_gold_program(name):
    codec = CODECS[name]
    for task, demonstration in zip(TASKS, demonstrations(ENV, TASKS, codec), strict=True):
        expected = [calls for turn in task.turns for calls in [*((call,) for call in turn.gold), ()]]
        docs = ENV.docs(task, len(task.turns) - 1)
        parsed = [parse(text, codec.format, docs) for text in actions(demonstration, codec)]
        assert [p.calls for p in parsed] == expected
        assert [p.end_of_turn for p in parsed] == [not calls for calls in expected]


def test_a_long_one_ends_with_a_whole_action():
    codec = CODECS["chat"]
    (whole,) = demonstrations(ENV, TASKS[:1], codec)
    for limit in range(len(whole.ids) - 200, len(whole.ids), 7):
        for ids, mask in demonstrations(ENV, TASKS[:1], codec, max_tokens=limit):
            assert len(ids) == len(mask) <= limit and mask[-1] and ids[-1] == codec.eos_id
            assert ids == whole.ids[: len(ids)]
    assert demonstrations(ENV, TASKS[:1], codec, max_tokens=10) == []


def test_only_training_tasks_are_shown():
    with pytest.raises(ParamError, match="training"):
        demonstrations(ENV, [replace(TASKS[0], split="test")], CODECS["words"])


def test_a_tiny_chat_policy_plays_the_shop_and_its_demonstration_has_the_same_prompt():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(TOKENIZER), max_position_embeddings=4096, **shape))
    model.requires_grad_(False)
    policy = HFPolicy(model, TOKENIZER, HfParams(train="none"), "none")
    requests = [Request(f"r{i}", TASKS[0], i, seed=i) for i in range(3)]
    rollouts = play(ENV, policy, requests, limits=Limits(12, 4096))
    (demonstration,) = demonstrations(ENV, TASKS[:1], policy.codec)
    for rollout in rollouts:
        prompt = list(rollout.tokens.prompt_ids)
        assert demonstration.ids[: len(prompt)] == prompt and demonstration.mask[len(prompt)] == 1
        assert rollout.stop_reason in ("turn_token_limit", "finished", "step_limit")
        assert rollout.policy_hash == policy.hash
