"""Batched sampling against the plain definition: one context at a time, no cache, no padding."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, MistralConfig, Qwen3Config

from seal.policy.attention import NAME, families, shares
from seal.policy.cache import PrefixCache
from seal.policy.generate import Decoding, generate, shared_beginnings
from seal.policy.nano import nano_config
from seal.policy.nano_model import NanoForCausalLM
from seal.policy.sampling import sample

SHAPE = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "head_dim": 8,
}
CONFIGS = {
    "llama": LlamaConfig(**SHAPE, num_key_value_heads=2, tie_word_embeddings=True),
    "windowed": MistralConfig(**SHAPE, num_key_value_heads=2, sliding_window=5),
    "mixed": Qwen3Config(
        **SHAPE,
        num_key_value_heads=4,
        sliding_window=5,
        use_sliding_window=True,
        layer_types=["full_attention", "sliding_attention"],
    ),
}
CONTEXTS = [[5, 6, 7], [9], [5, 6, 7], list(range(3, 30)), [5, 6, 8], [11] * 12, [5, 6, 7, 1]]
END = 2


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)  # beside another job, two threads are ten times slower


def tiny(name: str):
    torch.manual_seed(3)
    if name == "nano":
        return NanoForCausalLM(nano_config(2, 64)).eval()
    return AutoModelForCausalLM.from_config(CONFIGS[name], dtype=torch.float32).eval()


@torch.no_grad()
def plainly(model, context, u, n, temperature, ends):
    ids, logprobs = [], []
    for step in range(n):
        logits = model(input_ids=torch.tensor([context + ids]), use_cache=False).logits[:, -1]
        token, logprob = sample(logits, u[None, step], temperature)
        ids.append(int(token))
        logprobs.append(float(logprob))
        if ids[-1] in ends:
            break
    return ids, logprobs


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("name", [*CONFIGS, "nano"])
def test_equals_one_row_at_a_time(name, temperature, monkeypatch):
    monkeypatch.setattr("seal.policy.generate.PREFILL_TOKENS", {"cpu": 20})
    model = tiny(name)
    u = torch.rand(len(CONTEXTS), 9, generator=torch.Generator().manual_seed(1))
    ends = list(range(END, 384, 6))
    ids, logprobs = generate(model, CONTEXTS, u if temperature else None, Decoding(9, temperature, ends, 0))
    for row, context in enumerate(CONTEXTS):
        expected_ids, expected_logprobs = plainly(model, context, u[row], 9, temperature, ends)
        assert ids[row] == expected_ids
        assert logprobs[row] == pytest.approx(expected_logprobs, abs=1e-5)
    assert len({len(row) for row in ids}) > 2 or not temperature  # rows did leave the batch at different steps


@pytest.mark.parametrize("name", [*CONFIGS, "nano"])
def test_what_contexts_begin_alike_with_is_read_once(name, monkeypatch):
    """Docs of three kinds, one kind a beginning of another, under messages of their own; and a stranger."""
    monkeypatch.setattr("seal.policy.generate.SHARED_TOKENS", 4)
    model, noise = tiny(name), torch.Generator().manual_seed(2)
    docs = [list(range(3, 20)), list(range(3, 40)), [7] * 9]
    contexts = [[*docs[i % 3], *torch.randint(3, 60, (1 + i,), generator=noise).tolist()] for i in range(8)]
    contexts += [contexts[4], docs[0][:16], [8, 9]]
    u, read = torch.rand(len(contexts), 5, generator=noise), []
    model.model.register_forward_hook(
        lambda _, args, kwargs, out: read.append(kwargs["input_ids"].shape), with_kwargs=True
    )
    ids, logprobs = generate(model, contexts, u, Decoding(5, 1.0, range(END, 64, 9), 0))
    tokens = sum(rows * width for rows, width in read if width > 1)
    assert tokens < sum(len(context) for context in contexts) / 1.5
    for row, context in enumerate(contexts):
        expected_ids, expected_logprobs = plainly(model, context, u[row], 5, 1.0, range(END, 64, 9))
        assert ids[row] == expected_ids
        assert logprobs[row] == pytest.approx(expected_logprobs, abs=1e-5)


def test_reading_computes_no_logits():
    """A slice of hidden states that lies strided in memory took longer than all layers together, in bfloat16."""
    model, asked = tiny("llama"), []
    model.lm_head.register_forward_hook(lambda _, args, out: asked.append(tuple(args[0].shape[:2])))
    caches = [PrefixCache() for _ in CONTEXTS]
    ids, _ = generate(model, CONTEXTS, None, Decoding(3, 0.0, (END,), 0), caches)
    longer = [[*context, *more, 5, 6] for context, more in zip(CONTEXTS, ids, strict=True)]
    generate(model, longer, None, Decoding(3, 0.0, (END,), 0), caches)
    assert {positions for _, positions in asked} == {0, 1}
    assert sum(positions for _, positions in asked) <= 6  # one a step


@given(st.lists(st.lists(st.integers(0, 2), max_size=12), max_size=8), st.integers(1, 4))
def test_beginnings_are_shared_and_whole_steps(rows, step):
    for i, n in enumerate(shared_beginnings(rows, step)):
        most = max((_alike(rows[i], other) for j, other in enumerate(rows) if j != i), default=0)
        assert n == most // step * step


@given(st.lists(st.lists(st.integers(0, 2), max_size=12), min_size=1, max_size=8))
def test_families_are_alike_in_their_columns_and_save_most(rows):
    found, most = families(rows), 0
    for n in range(1, 13):
        beginnings = [tuple(row[:n]) for row in rows if len(row) >= n]
        most = max(most, n * (len(beginnings) - len(set(beginnings))))
    if found is None:
        assert most == 0
        return
    assert sorted(torch.cat(found.rows).tolist()) == list(range(len(rows)))
    for family in (family.tolist() for family in found.rows):
        assert len(family) == 1 or len({tuple(rows[i][: found.columns]) for i in family}) == 1
        assert len(family) == 1 or min(len(rows[i]) for i in family) >= found.columns
    assert found.columns * (len(rows) - len(found.rows)) == most


def test_heads_that_share_keys_are_attended_to_by_family_and_the_model_is_left_as_it_was():
    model, asked = tiny("llama"), []
    model.model.register_forward_pre_hook(
        lambda _, args, kwargs: asked.append((model.config._attn_implementation, kwargs.get("families"))),
        with_kwargs=True,
    )
    generate(model, CONTEXTS, None, Decoding(3, 0.0, (END,), 0))
    assert [name for name, _ in asked] == ["sdpa"] * (len(asked) - 3) + [NAME] * 3
    assert all((alike is not None) == (name == NAME) for name, alike in asked)
    assert model.config._attn_implementation == "sdpa"
    assert not shares(tiny("nano")) and not shares(tiny("mixed"))  # as many keys as queries
    other = AutoModelForCausalLM.from_config(GPT2Config(vocab_size=64, n_embd=8, n_layer=1, n_head=2))
    assert not shares(other)  # nor where the config knows of no such heads


def _alike(one, other):
    return next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def test_same_inputs_same_bits_and_the_model_keeps_its_mode():
    model = tiny("llama").train()
    u = torch.rand(len(CONTEXTS), 6, generator=torch.Generator().manual_seed(1))
    first = generate(model, CONTEXTS, u, Decoding(6, 1.0, (END,), 0))
    assert first == generate(model, CONTEXTS, u, Decoding(6, 1.0, (END,), 0))
    assert model.training
    assert generate(model, [], None, Decoding(6, 1.0, (END,), 0)) == ([], [])


def test_a_row_depends_on_its_own_numbers_alone():
    model = tiny("llama")
    u = torch.rand(len(CONTEXTS), 6, generator=torch.Generator().manual_seed(1))
    ids, _ = generate(model, CONTEXTS, u, Decoding(6, 1.0, (END,), 0))
    alone, _ = generate(model, CONTEXTS[3:4], u[3:4], Decoding(6, 1.0, (END,), 0))
    assert alone[0] == ids[3]


@pytest.mark.parametrize("name", [*CONFIGS, "nano"])
def test_kept_keys_and_values_change_nothing(name, monkeypatch):
    """Four steps of growing contexts; one row keeps nothing, one joins late, told segments differ in length."""
    monkeypatch.setattr("seal.policy.generate.PREFILL_TOKENS", {"cpu": 20})
    model, noise = tiny(name), torch.Generator().manual_seed(5)
    contexts = [list(context) for context in CONTEXTS]
    caches = [PrefixCache() if row != 2 else None for row in range(len(contexts))]
    for step in range(4):
        u = torch.rand(len(contexts), 7, generator=noise)
        here = [row for row in range(len(contexts)) if row != 4 or step > 1]
        sizes = [len(caches[row].ids) for row in here if caches[row]]
        ids, logprobs = generate(
            model,
            [contexts[row] for row in here],
            u[here],
            Decoding(7, 1.0, range(END, 64, 9), 0),
            [caches[row] for row in here],
        )
        for row, row_ids, row_logprobs in zip(here, ids, logprobs, strict=True):
            expected_ids, expected_logprobs = plainly(model, contexts[row], u[row], 7, 1.0, range(END, 64, 9))
            assert row_ids == expected_ids
            assert row_logprobs == pytest.approx(expected_logprobs, abs=1e-5)
            contexts[row] += row_ids
            assert caches[row] is None or caches[row].ids == contexts[row][:-1]
            contexts[row] += torch.randint(3, 60, ((row * step) % 6,), generator=noise).tolist()
        assert step == 0 or max(sizes) > 0
        contexts[5] = contexts[5][:7] + [8] * step  # no continuation of what was read: only a part of it holds
