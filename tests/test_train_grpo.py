"""TRL's step against the same maths in plain torch, and what the trainer leaves behind. Importing TRL takes seconds."""

import copy

import pytest
from train_cases import group, hand_made, judged, tiny_policy

from seal.settings.train import TrainParams
from seal.train.batch import assemble
from seal.train.optimise import Steps, UpdatePlan
from seal.train.reweight import Factors

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

ROLLOUTS = [*group("a", 3, 5, ("full", "off")), *group("b", 2, 2), *group("c", 4, 0)]
PLAIN = TrainParams(
    **{"steps": 2, "lr": 1e-2, "minibatches": 1, "loss": "dapo", "epsilon_high": 0.0, "schedule": "constant"},
    **{"negative": 1.0, "rehearse": 0.0},
)
BATCH = assemble(ROLLOUTS, PLAIN, Factors())
LOSSES = ("dapo", "grpo", "cispo")


def with_values(settings, **values):
    return settings.model_copy(update=values)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    torch.set_num_threads(1)  # beside another job, two threads are ten times slower


def trained(params, policy=None, batch=BATCH, reference=None):
    from seal.policy.optim import adamw
    from seal.train.grpo import train

    policy = policy or tiny_policy()
    metrics = {}
    plan, steps = UpdatePlan(params, 16, reference=reference), Steps(lambda _: batch, metrics.__setitem__)
    train(policy, plan, steps, adamw(policy.model, params.lr))
    return policy.model, metrics


def plain(settings, batch=BATCH, reference=None):
    """GRPO by hand: every update on the whole batch, old logprobs from the policy that entered the step."""
    from seal.policy.optim import adamw, set_rate
    from seal.train.descent import token_logprobs

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
            if settings.loss == "cispo":
                per_token = -ratio.clamp(max=high).detach() * advantages * logprobs
            else:
                clipped = ratio.clamp(1 - settings.epsilon, 1 + high)
                per_token = -torch.minimum(ratio * advantages, clipped * advantages)
            if settings.beta:
                per_token = per_token + settings.beta * ((ref - logprobs).exp() - (ref - logprobs) - 1)
            set_rate(optimizer, settings.lr * UpdatePlan(settings, 16).rate(updates))
            updates += 1
            optimizer.zero_grad()
            ((per_token * mask).sum() / batch.divisor).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), settings.max_grad_norm)
            optimizer.step()
    return model


def distance(one, other):
    pairs = zip(one.named_parameters(), other.named_parameters(), strict=True)
    return max((a - b).abs().max().item() for (_, a), (_, b) in pairs)


@pytest.mark.parametrize("iterations", [1, 3])
def test_the_update_equals_plain_torch(iterations):
    settings = with_values(PLAIN, num_iterations=iterations)
    model, metrics = trained(settings)
    assert distance(model, plain(settings)) < 1e-5 < distance(model, tiny_policy().model)
    assert sorted(metrics) == [0, 1] and (metrics[1]["clip_ratio"] > 0) == (iterations > 1)


@pytest.mark.parametrize("loss, high", [("cispo", 1.0), ("cispo", 3.0), ("dapo", 10.0)])
@pytest.mark.parametrize("schedule", ["constant", "linear"])
def test_the_update_equals_plain_torch_for_every_clip_and_schedule(loss, high, schedule):
    settings = with_values(PLAIN, num_iterations=4, loss=loss, epsilon_high=high, schedule=schedule)
    model, metrics = trained(settings)
    assert metrics[1]["clip_ratio"] is not None
    assert distance(model, plain(settings)) < 1e-5
    assert distance(model, plain(with_values(settings, loss="dapo", epsilon_high=0.0))) > 1e-4


def test_the_update_with_a_kl_term_equals_plain_torch():
    settings = with_values(PLAIN, num_iterations=2, beta=0.5)
    model, metrics = trained(settings)
    assert distance(model, plain(settings)) < 1e-5
    assert metrics[0]["kl"] < metrics[1]["kl"]


def test_the_reference_of_the_kl_term_is_the_parent_or_the_policy_that_is_given():
    other = tiny_policy(seed=5).model
    weights = {name: p.detach() for name, p in other.named_parameters()}
    settings = with_values(PLAIN, num_iterations=2, beta=0.5)
    model, metrics = trained(settings, reference=weights)
    assert distance(model, plain(settings, reference=other)) < 1e-5
    assert metrics[0]["kl"] > 0.001


@pytest.mark.parametrize("loss", LOSSES)
def test_parts_of_a_minibatch_add_up_to_it_for_every_loss(loss):
    settings = with_values(PLAIN, minibatches=2, loss=loss)
    whole, metrics = trained(settings)
    pieces, again = trained(with_values(settings, micro_batch=3))
    assert distance(pieces, whole) < 2e-5 < distance(whole, tiny_policy().model)
    assert again[0]["loss"] == pytest.approx(metrics[0]["loss"], abs=1e-5)


def test_rows_without_advantage_and_micro_batches_do_not_change_the_update():
    kept = assemble(ROLLOUTS, with_values(PLAIN, zero_variance="keep"), Factors())
    assert len(kept.rows) > len(BATCH.rows)
    model, _ = trained(PLAIN, batch=kept)
    assert distance(model, plain(PLAIN, kept)) < 1e-5
    pieces, _ = trained(with_values(PLAIN, micro_batch=3))
    assert distance(pieces, plain(PLAIN)) < 1e-5


def test_minibatches_are_updates_of_one_generation_batch_and_the_bytes_repeat():
    settings = with_values(PLAIN, minibatches=4)
    (one, metrics), (two, again) = trained(settings), trained(settings)
    assert distance(one, two) == 0.0 and metrics == again
    assert metrics[0]["clip_ratio"] is not None
    assert abs(metrics[0]["sampler_gap"]) > 0  # the hand-made logprobs are not this model's


def test_a_step_without_signal_leaves_a_fresh_policy_alone():
    model, metrics = trained(PLAIN, batch=assemble(group("c", 4, 0), PLAIN, Factors()))
    assert distance(model, tiny_policy().model) == 0.0 and metrics[0]["loss"] == 0.0


def test_the_model_comes_back_in_eval_mode_without_trls_patches():
    policy = tiny_policy()
    model, _ = trained(PLAIN, policy)
    assert "forward" not in vars(model) and not model.training
    trained(PLAIN, policy)  # and can be trained again
    assert "forward" not in vars(model)


@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_an_adapter_is_trained_and_the_base_is_not(beta):
    from peft import LoraConfig, get_peft_model

    policy = tiny_policy()
    torch.manual_seed(1)
    config = LoraConfig(r=2, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    policy.model = get_peft_model(policy.model, config)
    before = copy.deepcopy(policy.model.state_dict())
    model, metrics = trained(with_values(PLAIN, minibatches=2, beta=beta), policy)
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
    settings = with_values(PLAIN, steps=1, beta=0.1)
    _, parents = trained(settings, policy())
    model, starts = trained(settings, policy(), reference=weights)
    assert parents[0]["kl"] == 0.0 < starts[0]["kl"]
    assert set(model.peft_config) == {"default"}


@pytest.mark.parametrize("credit, asked", [("rollout", [1, 1]), ("turn", [])])
def test_only_groups_without_what_is_compared_are_replaced(credit, asked):
    """All fail, at different turns: nothing to learn by rollout, something by turn."""
    from seal.train.loop import train_round

    hard = [judged(f"a{i}", ["pass"] * i + ["argument_mismatch"] * (2 - i), "a") for i in (0, 1, 0, 1)]
    more = []

    def play(policy, step, others_than=(), n=0):
        more.append(n)
        return group(f"z{len(more)}", 0, 2)

    params = TrainParams(steps=1, lr=1e-2, credit=credit, zero_variance="resample")
    (row,) = train_round(tiny_policy(), hard, hand_made(play), params).curve
    assert more == asked and row["mixed_groups"] == (credit == "turn") and (row["loss"] != 0) == (credit == "turn")
