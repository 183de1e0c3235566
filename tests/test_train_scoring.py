"""Shared prompts are exact: the same logprobs, entropies and gradients as row by row, whatever the groups."""

import copy
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from train_cases import VOCABULARY, tiny_policy

torch = pytest.importorskip("torch")
from seal.train.scoring import _parts, add_scored_head, can_share, shared_scores  # noqa: E402

MODEL = tiny_policy().model
ids = st.integers(3, VOCABULARY - 1)
prompts = st.lists(ids, min_size=1, max_size=6)
rows = st.lists(
    st.tuples(st.integers(0, 2), st.lists(st.tuples(ids, st.booleans()), min_size=1, max_size=9)),
    min_size=1,
    max_size=7,
)


@settings(max_examples=15, deadline=None)
@given(st.lists(prompts, min_size=3, max_size=3), rows, st.sampled_from([0.7, 1.0]))
def test_the_same_numbers_and_gradients_as_row_by_row(known, rows, temperature):
    torch.set_num_threads(1)
    model = copy.deepcopy(MODEL)
    own = [known[k] for k, _ in rows]
    said = [[i for i, _ in row] for _, row in rows]
    wanted = torch.zeros(len(rows), max(map(len, said)), dtype=torch.long)
    for i, (_, row) in enumerate(rows):
        wanted[i, : len(row)] = torch.tensor([int(asked) for _, asked in row])

    expected, entropy = torch.zeros(wanted.shape), torch.zeros(wanted.shape)
    total = model(input_ids=torch.tensor([own[0]])).logits.sum() * 0.0
    for i, (prompt, completion) in enumerate(zip(own, said, strict=True)):
        logprobs = (model(input_ids=torch.tensor([prompt + completion])).logits[0] / temperature).log_softmax(-1)
        for t, token in enumerate(completion):
            if wanted[i, t]:
                row = logprobs[len(prompt) + t - 1]
                expected[i, t], entropy[i, t] = row[token].detach(), -(row.exp() * row).sum().detach()
                total = total + (1 + i) * row[token]
    total.backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters()}

    model.zero_grad()
    add_scored_head(model, temperature)
    found, entropies = shared_scores(model, own, said, wanted)
    (found * (1 + torch.arange(len(rows)))[:, None]).sum().backward()
    assert torch.allclose(found, expected, atol=1e-5) and torch.allclose(entropies, entropy, atol=1e-5)
    for name, p in model.named_parameters():
        assert torch.allclose(p.grad, gradients[name], atol=1e-4), name


@given(st.lists(st.integers(1, 500), min_size=1, max_size=40), st.integers(1, 2000))
def test_parts_hold_every_row_once_and_waste_little(lengths, budget):
    own = {i: [0] * n for i, n in enumerate(lengths)}
    parts = list(_parts(list(own), own, budget))
    assert sorted(i for part in parts for i in part) == sorted(own)
    for part in parts:
        longest = max(lengths[i] for i in part)
        assert len(part) == 1 or len(part) * longest <= budget
        assert min(lengths[i] for i in part) >= 0.8 * longest


def test_sliding_windows_and_embeddings_that_look_back_are_left_alone():
    from seal.policy.nano import nano_config
    from seal.policy.nano_model import NanoForCausalLM

    def model(layer_types=None):
        config = SimpleNamespace(layer_types=layer_types)
        return SimpleNamespace(config=SimpleNamespace(get_text_config=lambda: config))

    assert can_share(model()) and can_share(model(["full_attention"] * 2))
    assert not can_share(model(["sliding_attention", "full_attention"]))
    nano = NanoForCausalLM(nano_config(layers=1, width=32))
    assert not can_share(nano)
