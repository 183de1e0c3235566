"""Collection by a vLLM-like server, weights trained here: it samples from the adapter of this hash, or nobody does."""

from dataclasses import replace

import pytest
from served_model import FakeVllm, serving
from test_policy_chat import CHATML, byte_tokenizer
from test_policy_hf import LIMITS, base, observations  # noqa: F401  base: the fixture

from seal.core.errors import DependencyError, ParamError
from seal.core.labels import DEFAULT_PRIORITY
from seal.core.seeds import RoundKey
from seal.diagnose.judge import judge
from seal.env.shop import ShopEnv
from seal.interface.state import InterfaceState
from seal.policy import load_policy
from seal.policy.hf import new_hf
from seal.rollout.collect import collect
from seal.settings.play import CollectParams
from seal.settings.policies import HfParams, ServeParams
from seal.settings.train import TrainParams
from seal.train.loop import train_round
from seal.train.on_policy import OnPolicy

torch = pytest.importorskip("torch")


def served(base, url, folder, **options):  # noqa: F811
    serve = ServeParams(url=url, adapters=str(folder), parallel=4)
    return new_hf(HfParams(base=base, lora_rank=4, serve=serve, **options), device="cpu")


def nudge(policy):
    with torch.no_grad():
        for name, p in policy.model.named_parameters():
            if "lora_B" in name:
                p.add_(0.05)


@pytest.fixture
def fake(base):  # noqa: F811
    torch.set_num_threads(1)
    return FakeVllm(lambda: new_hf(HfParams(base=base, lora_rank=4), device="cpu"))


def test_the_server_samples_from_the_weights_of_this_hash_as_they_change(base, fake, tmp_path):  # noqa: F811
    with serving(fake) as url:
        policy = served(base, url, tmp_path)
        nudge(policy)
        first = policy.hash
        actions = policy.act(observations(policy), 1.0, LIMITS)
        assert list(fake.adapters) == [f"seal-{first}"]
        assert policy.act(observations(policy), 1.0, LIMITS) == actions  # each by its own seed
        assert sum(path == "/v1/load_lora_adapter" for path, _ in fake.requests) == 1
        for o, action in zip(observations(policy), actions, strict=True):
            assert len(action.ids) == len(action.logprobs) and action.text == policy.codec.decode(action.ids)
            whole = torch.tensor([[*o.ids, *action.ids]])
            with torch.no_grad():
                scores = policy.model(input_ids=whole).logits[0, len(o.ids) - 1 : -1].float().log_softmax(-1)
            own = scores.gather(-1, torch.tensor(action.ids)[:, None]).squeeze(-1)
            assert torch.allclose(own, torch.tensor(action.logprobs), atol=1e-4)  # the weights here are those there
        nudge(policy)
        policy.act(observations(policy)[:1], 1.0, LIMITS)
        assert list(fake.adapters) == [f"seal-{policy.hash}"] != [f"seal-{first}"]
        assert [path.name for path in tmp_path.iterdir()] == [f"seal-{policy.hash}"]
        request = next(body for path, body in fake.requests if path == "/v1/completions")
        assert (request["top_p"], request["top_k"], request["repetition_penalty"]) == (1.0, -1, 1.0)


def test_where_it_is_served_is_kept_and_does_not_change_the_hash(base, fake, tmp_path):  # noqa: F811
    with serving(fake) as url:
        policy = served(base, url, tmp_path / "adapters")
        policy.save(tmp_path / "p")
        again = load_policy(tmp_path / "p")
        assert again.hash == policy.hash == new_hf(HfParams(base=base, lora_rank=4), device="cpu").hash
        assert again.serve == policy.serve
        assert again.act(observations(policy)[:2], 1.0, LIMITS) == policy.act(observations(policy)[:2], 1.0, LIMITS)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda a: {**a, "model": "seal-other"}, "seal-other answered for"),
        (lambda a: {**a, "choices": [{**a["choices"][0], "token_ids": None}]}, "without token ids"),
        (lambda a: {**a, "choices": [{**a["choices"][0], "prompt_token_ids": [1]}]}, "other tokens"),
        (lambda a: {**a, "choices": [{**a["choices"][0], "finish_reason": "stop", "token_ids": [9]}]}, "1 ids"),
    ],
)
def test_an_answer_of_other_weights_or_of_another_server_is_refused(base, fake, tmp_path, change, says):  # noqa: F811
    fake.broken = change
    with serving(fake) as url, pytest.raises(DependencyError, match=says):
        policy = served(base, url, tmp_path)
        policy.act(observations(policy)[:1], 1.0, LIMITS)


def test_no_server_and_nothing_it_could_follow_are_one_error(base, tmp_path):  # noqa: F811
    policy = served(base, "http://127.0.0.1:9/v1", tmp_path)
    policy.serve = policy.serve.model_copy(update={"seconds": 1.0})
    with pytest.raises(DependencyError, match="vllm serve"):
        policy.act(observations(policy)[:1], 1.0, LIMITS)
    full = served(base, "http://127.0.0.1:9/v1", tmp_path, train="full")
    with pytest.raises(ParamError, match="LoRA"):
        full.act(observations(full)[:1], 1.0, LIMITS)


def brief(folder):
    """A random Llama whose every token ends its output by a chance of a third: it says little, so it comes far."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = byte_tokenizer(CHATML, "<|im_end|>")
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=2048, **shape))
    with torch.no_grad():
        model.model.embed_tokens.weight[:, 0] += 3.0  # alike in all states
        model.lm_head.weight[tokenizer.eos_token_id, 0] = 0.85
    model.save_pretrained(folder)
    return str(folder)


@pytest.mark.slow
def test_a_round_is_played_by_the_server_and_trained_here(tmp_path):
    """Collected, then fresh, rollouts of whole conversations: their logprobs are those of the weights that train."""
    torch.set_num_threads(1)
    model = brief(tmp_path / "base")
    fake = FakeVllm(lambda: new_hf(HfParams(base=model, lora_rank=4), device="cpu"))
    env, bare = ShopEnv(train=4, dev=1, test=1), InterfaceState()
    play = CollectParams(tasks=2, group_size=4, evolved=0, max_action_tokens=12, context=2000)
    with serving(fake) as url:
        policy = served(model, url, tmp_path / "adapters")
        nudge(policy)
        first = policy.hash
        played = collect(env, policy, bare, play, RoundKey("r1", 1, 0))
        assert len(played) == 8 and {r.policy_hash for r in played} == {first}
        assert sum(r.steps[-1].turn > 0 for r in played) > 4  # of several user turns
        judged = [replace(j, success=i % 2 == 0) for i, j in enumerate(judge(env, played, DEFAULT_PRIORITY))]
        params = TrainParams(steps=2, lr=1e-2, beta=0.01, zero_variance="keep", replay=0)  # every row is compared
        groups = OnPolicy(env, bare, play, DEFAULT_PRIORITY, RoundKey("r1", 1, 0))
        result = train_round(policy, judged, groups, params)
    assert [row["rollouts"] for row in result.curve] == [8, 8]
    assert all(abs(row["sampler_gap"]) < 1e-4 for row in result.curve)
    (second,) = {j.rollout.policy_hash for j in result.played}
    loaded = [body["lora_name"] for path, body in fake.requests if path == "/v1/load_lora_adapter"]
    assert loaded == [f"seal-{first}", f"seal-{second}"] and len({first, second, policy.hash}) == 3
