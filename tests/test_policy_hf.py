"""hf policies on a random Llama: acting, saving, loading, and the warm start."""

import itertools
import json
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_policy_chat import CHATML, byte_tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

from seal.core.errors import ArtifactError, DependencyError, ParamError
from seal.core.seeds import RoundKey
from seal.core.types import Task, UserTurn
from seal.diagnose.judge import judge
from seal.env.shop import ShopEnv
from seal.evolve.next_interface import next_interface
from seal.interface.state import InterfaceState
from seal.policy import counter_of, load_policy, policy_info, warmstart
from seal.policy.base import Limits, Observation
from seal.policy.hf import ADAPTER, alike_in_length, new_hf
from seal.policy.scripted import FaultyPolicy, GoldPolicy
from seal.policy.warmstart import STATE, warm_start
from seal.rollout.collect import collect
from seal.settings.evolve import EvolveParams
from seal.settings.play import CollectParams
from seal.settings.policies import HfParams, WarmStartParams
from seal.settings.rounds import Defaults, Round

TASK = Task("t", "shop", "c", "s", "train", (UserTurn("hi"),), {}, ())
LIMITS = Limits(max_action_tokens=6, context=120)


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)  # beside another job, two threads are ten times slower


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A local transformers folder: a random Llama of two layers over bytes."""
    folder = tmp_path_factory.mktemp("base")
    tokenizer = byte_tokenizer(CHATML, "<|im_end|>")
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=256, **shape))
    model.save_pretrained(folder)
    return str(folder)


def make(base, **options):
    return new_hf(HfParams(base=base, **options), device="cpu", batch=3)


def observations(policy, n=7):
    prompt = policy.codec.encode("system")
    made = []
    for i in range(n):
        ids = prompt + policy.codec.user("x" * (5 * (i % 4)), ())
        made.append(Observation(TASK, i, seed=100 + i, turn=0, step=i % 2, ids=ids))
    return made


def files(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_an_output_depends_on_its_own_seed_alone(base):
    policy = make(base)
    seen = observations(policy)
    actions = policy.act(seen, 1.0, LIMITS)
    assert actions == policy.act(observations(policy), 1.0, LIMITS)
    backwards = policy.act(seen[::-1], 1.0, LIMITS)[::-1]
    assert [a.ids for a in backwards] == [a.ids for a in actions]
    assert len({a.ids for a in actions}) > 1
    for action in actions:
        ended = action.ids[-1] in policy.codec.end_ids
        assert action.finish == ("stop" if ended else "length")
        assert ended or len(action.ids) == LIMITS.max_action_tokens
        assert len(action.logprobs) == len(action.ids) and max(action.logprobs) <= 0
        assert action.text == policy.codec.decode(action.ids)


def test_what_stays_read_is_bounded_and_decides_nothing(base):
    policy = make(base)
    outputs = {}
    for policy.keep_tokens in (0, 100, 10_000):
        seen = observations(policy)
        first = policy.act(seen, 1.0, LIMITS)
        kept = [len(o.memory["prefix"].ids) if o.memory else 0 for o in seen]
        assert sum(kept) <= policy.keep_tokens
        assert sum(map(bool, kept)) == {0: 0, 100: 2, 10_000: 7}[policy.keep_tokens]
        for o, action in zip(seen, first, strict=True):
            o.ids, o.step = [*o.ids, *action.ids, *policy.codec.results(["done"])], o.step + 1
        outputs[policy.keep_tokens] = [a.ids for a in policy.act(seen, 1.0, LIMITS)]
    assert outputs[0] == outputs[100] == outputs[10_000]


@given(st.lists(st.integers(1, 50), max_size=8).map(sorted), st.integers(1, 8), st.sampled_from([0.0, 5.0, 90.0]))
def test_rows_of_like_length_generate_together(lengths, most, a_pass):
    def cost(ends):
        return sum(a_pass + (stop - start) * lengths[stop - 1] for start, stop in itertools.pairwise([0, *ends]))

    parts = alike_in_length(lengths, most, a_pass)
    assert [i for part in parts for i in range(len(lengths))[part]] == list(range(len(lengths)))
    inner = [ends for k in range(len(lengths)) for ends in itertools.combinations(range(1, len(lengths)), k)]
    allowed = [[*ends, len(lengths)] for ends in inner]
    allowed = [ends for ends in allowed if all(b - a <= most for a, b in itertools.pairwise([0, *ends]))]
    assert not lengths or cost([part.stop for part in parts]) == min(map(cost, allowed))
    assert len(alike_in_length(lengths, most, math.inf)) == -(-len(lengths) // most)  # passes are all that counts


def test_no_more_episodes_are_live_than_stay_read(base):
    policy = new_hf(HfParams(base=str(base), lora_rank=2), batch=2)
    policy.keep_tokens = 1000
    assert [policy.live_episodes(Limits(8, context)) for context in (10, 100, 200)] == [100, 10, 4]  # whole batches
    assert policy.live_episodes(Limits(8, 10_000)) == 2  # the model itself has 256 positions
    policy.keep_tokens = 0
    assert policy.live_episodes(Limits(8, 100)) == policy.batch


def test_no_room_is_an_overflow(base):
    policy = make(base)
    short, long = observations(policy, 4)[0], observations(policy, 4)[3]
    limits = Limits(max_action_tokens=6, context=len(short.ids) + 6)
    assert [a.finish == "overflow" for a in policy.act([long, short, long], 0.0, limits)] == [True, False, True]
    beyond = Limits(max_action_tokens=300, context=10_000)  # the model itself has 256 positions
    assert policy.act([short], 0.0, beyond)[0].finish == "overflow"
    assert policy.act([], 0.0, limits) == []


@pytest.mark.parametrize("train", ["lora", "full", "none"])
def test_a_saved_policy_comes_back_to_the_byte(base, tmp_path, train):
    policy = make(base, train=train, lora_rank=4)
    before = policy.hash
    if train != "none":
        warm_start(policy.model, [(list(range(10, 30)), [0] * 10 + [1] * 10)], WarmStartParams(steps=2, lr=1e-2))
        assert policy.hash != before
    policy.save(tmp_path / "a")
    again = load_policy(tmp_path / "a")
    assert again.hash == policy.hash
    assert again.act(observations(policy), 1.0, LIMITS) == make_like(policy, again)
    again.save(tmp_path / "b")
    assert files(tmp_path / "a") == files(tmp_path / "b")
    assert json.loads((tmp_path / "a" / "policy.json").read_text())["kind"] == "hf"


def make_like(policy, again):
    policy.batch = again.batch
    return policy.act(observations(policy), 1.0, LIMITS)


def test_a_new_adapter_changes_nothing_yet(base):
    bare, adapted = make(base, train="none"), make(base, lora_rank=4)
    assert [a.ids for a in bare.act(observations(bare), 0.0, LIMITS)] == [
        a.ids for a in adapted.act(observations(adapted), 0.0, LIMITS)
    ]
    assert bare.hash != adapted.hash
    assert make(base, lora_rank=4).hash == adapted.hash


def test_broken_policies_are_named(base, tmp_path):
    policy = make(base, lora_rank=4)
    policy.save(tmp_path / "p")
    weights = tmp_path / "p" / "adapter_model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:100])
    with pytest.raises(ArtifactError, match="adapter_model"):
        load_policy(tmp_path / "p")
    weights.write_bytes(whole[:-4] + b"\0\0\1\0")
    with pytest.raises(ArtifactError, match="hash"):
        load_policy(tmp_path / "p")
    about = json.loads((tmp_path / "p" / "policy.json").read_text())
    (tmp_path / "p" / "policy.json").write_text(json.dumps({**about, "base_digest": "other"}))
    with pytest.raises(ArtifactError, match="base"):
        load_policy(tmp_path / "p")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DependencyError, match="empty"):
        new_hf(HfParams(base=str(tmp_path / "empty")), device="cpu")


def demos(n=6):
    """Sequences in which the second half repeats the first."""
    made = []
    for i in range(n):
        half = [30 + (7 * i + 3 * j) % 60 for j in range(4 + i)]
        made.append((half + half, [0] * len(half) + [1] * len(half)))
    return made


def test_warm_start_learns_and_resumes_to_the_byte(base, tmp_path, monkeypatch):
    monkeypatch.setattr(warmstart, "MICRO_TOKENS", 30)
    whole, params = make(base, train="full"), WarmStartParams(steps=30, lr=2e-2, batch_tokens=60)
    losses = warm_start(whole.model, demos(), params, seed=4)
    assert losses[-1] < 0.5 * losses[0]

    class Killed(Exception):
        pass

    def kill(progress):
        if progress["step"] == 17:
            raise Killed

    options = {"params": params, "seed": 4, "resume_dir": tmp_path / "state"}
    with pytest.raises(Killed):
        warm_start(make(base, train="full").model, demos(), on_progress=kill, **options)
    assert (tmp_path / "state" / STATE).exists()
    resumed = make(base, train="full")
    seen = []
    assert warm_start(resumed.model, demos(), on_progress=seen.append, **options) == losses
    assert seen[0]["step"] == 15
    assert resumed.hash == whole.hash
    assert not (tmp_path / "state" / STATE).exists()


def test_warm_start_trains_what_is_masked_in_and_only_the_adapter(base):
    policy = make(base, lora_rank=4)
    frozen = {name: p.detach().clone() for name, p in policy.model.named_parameters() if not p.requires_grad}
    loss = warm_start(policy.model, demos(2), WarmStartParams(steps=1, lr=1e-3, batch_tokens=1000))[0]
    ids, mask = demos(2)[0]
    others, other_mask = demos(2)[1]
    expected = 0.0
    reference = make(base, train="none").model
    for row, trained in ((ids, mask), (others, other_mask)):
        logprobs = reference(input_ids=torch.tensor([row])).logits[0].log_softmax(-1)
        expected -= sum(float(logprobs[i - 1, row[i]]) for i in range(1, len(row)) if trained[i])
    assert loss == pytest.approx(expected / (sum(mask) + sum(other_mask)), rel=1e-5)
    for name, p in policy.model.named_parameters():
        if name in frozen:
            assert torch.equal(p, frozen[name])
    with pytest.raises(ParamError, match="nothing to train"):
        warm_start(make(base, train="none").model, demos(), WarmStartParams(steps=1))
    with pytest.raises(ParamError, match="demonstrations"):
        warm_start(policy.model, [], WarmStartParams(steps=1))


def test_cues_are_counted_in_the_tokens_of_the_policy_whether_it_plays_or_not(base, tmp_path):
    """The byte tokenizer's are bytes; a policy that is only looked at loads its tokenizer and no weights."""
    policy, cue = make(base), "damaged K3 late K7"
    policy.save(tmp_path / "policy")
    (tmp_path / "policy" / ADAPTER).unlink()
    looked = policy_info(tmp_path / "policy")
    assert counter_of(policy)(cue) == counter_of(looked)(cue) == len(cue) != counter_of(GoldPolicy())(cue) == 4
    assert looked.format == policy.format
    looked = policy_info(_broken(tmp_path / "policy", base=str(tmp_path / "none")))
    with pytest.raises(DependencyError, match="base model"):
        counter_of(looked)


def _broken(folder, **changes):
    about = json.loads((folder / "policy.json").read_text())
    (folder / "policy.json").write_text(json.dumps(about | changes))
    return folder


def test_a_budget_of_an_hf_policy_is_in_its_tokens(base):
    env, policy = ShopEnv(train=6, dev=1, test=1), make(base)
    played = collect(
        env, FaultyPolicy(0.7), InterfaceState(), CollectParams(tasks=6, group_size=2), RoundKey("r1", 1, 0)
    )
    judged = judge(env, played, ())
    failures = [
        {"category": "base", "tool": tool.name, "parameter": "", "label": "argument_mismatch", "n": 9, "rate": 1.0}
        for tool in env.domain.tools
    ]
    for plays, cues in ((GoldPolicy(), 12), (policy, 3)):
        params = round_params(token_budget=60)
        found = next_interface(env, plays, InterfaceState(), judged, failures, params, RoundKey("r1", 1, 0))
        assert sum(map(counter_of(plays), (item.text for item in found.state.active))) <= 60
        assert [row["tokens"] for row in found.changes] == [counter_of(plays)(row["text"]) for row in found.changes]
        assert len(found.state.active) >= cues
    assert len(found.state.active) < 8, "bytes are more than words"


def round_params(**evolve):
    return Round(parent="r0", env="shop", **dict(Defaults(evolve=EvolveParams(**evolve))))
