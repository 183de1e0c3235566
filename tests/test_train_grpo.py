"""TRL's step against the same maths in plain torch, and what the trainer leaves behind. Importing TRL takes seconds."""

import copy
from dataclasses import replace
from typing import get_args, get_type_hints

import pytest
from train_cases import group, judged, tiny_policy

from seal.settings.train import TrainParams
from seal.train.batch import assemble
from seal.train.reweight import Factors, WeightParams
from seal.train.settings import OptimSettings

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

BATCH = assemble([*group("a", 3, 5, ("full", "off")), *group("b", 2, 2), *group("c", 4, 0)], WeightParams(), Factors())
SETTINGS = OptimSettings(steps=2, rows=16, lr=1e-2, minibatches=1)
LOSSES = get_args(get_type_hints(TrainParams)["loss"])


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)  # beside another job, two threads are ten times slower


def trained(settings, policy=None, batch=BATCH):
    from seal.train.grpo import train
    from seal.train.updates import adamw

    policy = policy or tiny_policy()
    metrics = {}
    optimizer = adamw(policy.model, settings.lr)
    train(policy.model, policy.tokenizer, lambda _: batch, settings, optimizer, metrics.__setitem__)
    return policy.model, metrics


def plain(settings, batch=BATCH, reference=None):
    """GRPO by hand: every update on the whole batch, old logprobs from the policy that entered the step."""
    from seal.train.updates import adamw, set_rate, token_logprobs

    model, updates = tiny_policy().model, 0
    optimizer, start = adamw(model, settings.lr), copy.deepcopy(model)
    for _ in range(settings.steps):
        with torch.no_grad():
            old = token_logprobs(model, batch.rows)[0]
            ref = token_logprobs(reference or start, batch.rows)[0]
        for _ in range(settings.num_iterations):
            logprobs, mask, advantages = token_logprobs(model, batch.rows)
            ratio = (logprobs - old).exp()
            high = settings.epsilon_high or settings.epsilon
            sums = ((logprobs - old) * mask).sum(1, keepdim=True)
            if settings.loss == "luspo":
                ratio = (sums / mask.sum(1, keepdim=True)).exp()
            if settings.loss == "vespo":  # TRL's defaults: k 2 and lambda 3, of negative advantages 3 and 2
                k, rate = (torch.where(advantages >= 0, *of) for of in ((2.0, 3.0), (3.0, 2.0)))
                gamma = (rate + k * sums - rate * sums.exp()).exp()
                per_token = -gamma.detach() * advantages * logprobs
            elif settings.loss == "cispo":
                per_token = -ratio.clamp(max=high).detach() * advantages * logprobs
            else:
                clipped = ratio.clamp(1 - settings.epsilon, 1 + high)
                per_token = -torch.minimum(ratio * advantages, clipped * advantages)
            if settings.beta:
                per_token = per_token + settings.beta * ((ref - logprobs).exp() - (ref - logprobs) - 1)
            set_rate(optimizer, settings, updates)
            updates += 1
            optimizer.zero_grad()
            divisor = len(batch.rows) if settings.loss == "luspo" else batch.divisor
            ((per_token * mask).sum() / divisor).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), settings.max_grad_norm)
            optimizer.step()
    return model


def distance(one, other):
    pairs = zip(one.named_parameters(), other.named_parameters(), strict=True)
    return max((a - b).abs().max().item() for (_, a), (_, b) in pairs)


@pytest.mark.parametrize("iterations", [1, 3])
def test_the_update_equals_plain_torch(iterations):
    settings = OptimSettings(2, 16, lr=1e-2, minibatches=1, num_iterations=iterations)
    model, metrics = trained(settings)
    assert distance(model, plain(settings)) < 1e-5 < distance(model, tiny_policy().model)
    assert sorted(metrics) == [0, 1] and (metrics[1]["clip_ratio"] > 0) == (iterations > 1)


@pytest.mark.parametrize("loss, high", [("cispo", 1.0), ("cispo", 3.0), ("dapo", 10.0), ("luspo", 0.5), ("vespo", 0.0)])
@pytest.mark.parametrize("schedule", ["constant", "linear"])
def test_the_update_equals_plain_torch_for_every_clip_and_schedule(loss, high, schedule):
    settings = replace(SETTINGS, num_iterations=4, loss=loss, epsilon_high=high, schedule=schedule)
    model, metrics = trained(settings)
    assert (metrics[1]["clip_ratio"] is None) == (loss == "vespo")  # which clips nothing
    assert distance(model, plain(settings)) < 1e-5
    assert distance(model, plain(replace(settings, loss="dapo", epsilon_high=0.0))) > 1e-4


def test_the_update_with_a_kl_term_equals_plain_torch():
    settings = OptimSettings(2, 16, lr=1e-2, minibatches=1, num_iterations=2, beta=0.5)
    model, metrics = trained(settings)
    assert distance(model, plain(settings)) < 1e-5
    assert metrics[0]["kl"] < metrics[1]["kl"]


def test_the_reference_of_the_kl_term_is_the_parent_or_the_policy_that_is_given():
    other = tiny_policy(seed=5).model
    weights = {name: p.detach() for name, p in other.named_parameters()}
    settings = OptimSettings(2, 16, lr=1e-2, minibatches=1, num_iterations=2, beta=0.5, reference=weights)
    model, metrics = trained(settings)
    assert distance(model, plain(settings, reference=other)) < 1e-5
    assert metrics[0]["kl"] > 0.001


@pytest.mark.parametrize("loss", LOSSES)
def test_parts_of_a_minibatch_add_up_to_it_for_every_loss(loss):
    settings = OptimSettings(2, 16, lr=1e-2, minibatches=2, loss=loss)
    whole, metrics = trained(settings)
    pieces, again = trained(replace(settings, micro_batch=3))
    assert distance(pieces, whole) < 2e-5 < distance(whole, tiny_policy().model)
    assert again[0]["loss"] == pytest.approx(metrics[0]["loss"], abs=1e-5)


def test_rows_without_advantage_and_micro_batches_do_not_change_the_update():
    kept = assemble(
        [*group("a", 3, 5, ("full", "off")), *group("b", 2, 2), *group("c", 4, 0)],
        WeightParams(),
        Factors(),
        zero_variance="keep",
    )
    assert len(kept.rows) > len(BATCH.rows)
    model, _ = trained(SETTINGS, batch=kept)
    assert distance(model, plain(SETTINGS, kept)) < 1e-5
    pieces, _ = trained(OptimSettings(steps=2, rows=16, lr=1e-2, minibatches=1, micro_batch=3))
    assert distance(pieces, plain(SETTINGS)) < 1e-5


def test_minibatches_are_updates_of_one_generation_batch_and_the_bytes_repeat():
    settings = OptimSettings(steps=2, rows=16, lr=1e-2, minibatches=4)
    (one, metrics), (two, again) = trained(settings), trained(settings)
    assert distance(one, two) == 0.0 and metrics == again
    assert metrics[0]["clip_ratio"] is not None
    assert abs(metrics[0]["sampler_gap"]) > 0  # the hand-made logprobs are not this model's


def test_a_step_without_signal_leaves_a_fresh_policy_alone():
    model, metrics = trained(SETTINGS, batch=assemble(group("c", 4, 0), WeightParams(), Factors()))
    assert distance(model, tiny_policy().model) == 0.0 and metrics[0]["loss"] == 0.0


def test_the_model_comes_back_in_eval_mode_without_trls_patches():
    policy = tiny_policy()
    model, _ = trained(SETTINGS, policy)
    assert "forward" not in vars(model) and not model.training
    trained(SETTINGS, policy)  # and can be trained again
    assert "forward" not in vars(model)


@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_an_adapter_is_trained_and_the_base_is_not(beta):
    from peft import LoraConfig, get_peft_model

    policy = tiny_policy()
    torch.manual_seed(1)
    config = LoraConfig(r=2, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    policy.model = get_peft_model(policy.model, config)
    before = copy.deepcopy(policy.model.state_dict())
    model, metrics = trained(OptimSettings(steps=2, rows=16, lr=1e-2, beta=beta), policy)
    after = model.state_dict()
    assert before.keys() == after.keys()  # no reference adapter left behind
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed and all("lora" in name for name in changed)
    assert (metrics[1]["kl"] is not None) == (beta > 0)


def test_an_adapters_reference_can_be_another_adapter():
    from peft import LoraConfig, get_peft_model

    def policy():
        made = tiny_policy()
        torch.manual_seed(1)
        config = LoraConfig(r=2, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
        made.model = get_peft_model(made.model, config)
        return made

    other = policy().model
    with torch.no_grad():
        for name, p in other.named_parameters():
            if "lora_B" in name:
                p.add_(0.3)
    weights = {name: p.detach() for name, p in other.named_parameters() if p.requires_grad}
    settings = OptimSettings(1, 16, lr=1e-2, minibatches=1, beta=0.1)
    _, parents = trained(settings, policy())
    model, starts = trained(replace(settings, reference=weights), policy())
    assert parents[0]["kl"] == 0.0 < starts[0]["kl"]
    assert set(model.peft_config) == {"default"}


@pytest.mark.parametrize("credit, asked", [("rollout", [1, 1]), ("turn", [])])
def test_only_groups_without_what_is_compared_are_replaced(credit, asked):
    """All fail, at different turns: nothing to learn by rollout, something by turn."""
    from seal.train.loop import Loop

    hard = [judged(f"a{i}", ["pass"] * i + ["argument_mismatch"] * (2 - i), "a") for i in (0, 1, 0, 1)]
    more = []

    def play(step, seen=(), n=0):
        more.append(n)
        return group(f"z{len(more)}", 0, 2)

    params = TrainParams(steps=1, credit=credit, zero_variance="resample")
    loop = Loop(hard, play, params, "r1")
    loop.run(tiny_policy(), OptimSettings(1, 24, lr=1e-2))
    (row,) = loop.result.curve
    assert more == asked and row["mixed_groups"] == (credit == "turn") and (row["loss"] != 0) == (credit == "turn")
