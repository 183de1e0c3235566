"""Training is exact: killed at any moment it ends with the same adapter, and a loaded adapter is the saved one."""

import json
import multiprocessing
import os
import random
import time

import pytest
from test_policy_hf import base  # noqa: F401  the fixture
from train_cases import group, hand_made, tiny_policy

from seal.core.errors import ArtifactError
from seal.settings.train import TrainParams
from seal.train.loop import train_round

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow
STEPS = 5
COLLECTED = [*group("a", 2, 2, ("full", "off")), *group("b", 0, 4)]


def adapted(seed: int = 1):
    """The tiny policy with a LoRA adapter."""
    from peft import LoraConfig, get_peft_model

    policy = tiny_policy()
    torch.manual_seed(seed)
    config = LoraConfig(r=2, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    policy.model = get_peft_model(policy.model, config)
    return policy


def rollouts(policy, step, others_than=(), n=0):
    time.sleep(0.02)  # a moment to be killed in
    return [*group(f"s{step}", 1 + step % 2, 3, ("full", "off")), *group(f"z{step}", 4, 0)]


def run(algorithm, resume_dir, out=None):
    """Train the adapter; its bytes, and the rows of the weights table, go to `out` or come back."""
    from safetensors.torch import save

    torch.set_num_threads(1)
    policy = adapted()
    params = TrainParams(algorithm=algorithm, steps=STEPS, lr=1e-2)
    result = train_round(policy, COLLECTED, hand_made(rollouts), params, resume_dir=resume_dir)
    trained = {name: p.detach() for name, p in policy.model.named_parameters() if p.requires_grad}
    made = save(trained) + json.dumps([result.curve, result.weight_rows("r1")]).encode()
    if out is None:
        return made
    partial = out.with_suffix(".partial")
    partial.write_bytes(made)
    os.replace(partial, out)


@pytest.mark.parametrize("algorithm", ["grpo", "sft", "dpo"])
def test_killed_at_any_moment_it_ends_with_the_same_adapter(algorithm, tmp_path):
    """Real processes, kill -9 a random moment after the first, second, ... step is recorded, until one ends."""
    whole = run(algorithm, tmp_path / "whole")
    assert whole == run(algorithm, tmp_path / "again")  # same inputs, same bytes
    fork, rng = multiprocessing.get_context("fork"), random.Random(algorithm)
    out, folder = tmp_path / "out", tmp_path / "state"

    def recorded():
        return len(list(folder.glob("step_*.json")))

    states = []
    for steps in (0, 1, 1, 2, 3, 4, STEPS):
        child = fork.Process(target=run, args=(algorithm, folder, out))
        child.start()
        while child.is_alive() and recorded() < steps:
            time.sleep(0.001)
        child.join(rng.uniform(0.0, 0.03))
        child.kill()
        child.join()
        states.append(recorded())
        if out.exists():
            break
    assert len(states) >= 4 and len(set(states)) >= 3  # it was killed in different steps
    run(algorithm, folder, out)
    assert out.read_bytes() == whole


def test_rows_that_a_kill_left_behind_while_clearing_are_not_read(tmp_path):
    from seal.train import resume

    policy = adapted()
    optimizer = torch.optim.AdamW([p for p in policy.model.parameters() if p.requires_grad])
    resume.save(tmp_path, 0, {"judged": []}, policy.model, optimizer)
    (tmp_path / "state.pt").unlink()  # what `clear` takes first
    assert resume.load(tmp_path) is None
    assert run("sft", tmp_path / "new") == run("sft", tmp_path)


def test_a_loaded_adapter_is_the_one_that_was_saved_and_trains_on_alike(base, tmp_path):  # noqa: F811
    from seal.policy import load_policy
    from seal.policy.hf import new_hf, trained_weights
    from seal.policy.warmstart import warm_start
    from seal.settings.policies import HfParams, WarmStartParams

    sequences = [(list(range(10, 30)), [0] * 10 + [1] * 10)]
    policy = new_hf(HfParams(base=base, lora_rank=4), device="cpu")
    fresh_hash, names = policy.hash, list(trained_weights(policy.model))
    warm_start(policy.model, sequences, WarmStartParams(steps=3, lr=1e-2))
    policy.save(tmp_path / "one")
    again = load_policy(tmp_path / "one")
    assert again.hash == policy.hash != fresh_hash
    assert list(again.model.peft_config) == ["default"] and list(trained_weights(again.model)) == names
    frozen = {name: p.detach().clone() for name, p in again.model.named_parameters() if not p.requires_grad}
    for model in (policy.model, again.model):
        warm_start(model, sequences, WarmStartParams(steps=3, lr=1e-2))
    assert again.hash == policy.hash
    for name, p in again.model.named_parameters():
        assert p.requires_grad or torch.equal(p, frozen[name]), name  # nothing was merged into the base


def test_nano_weights_other_than_recorded_are_refused(tmp_path):
    from seal.policy import load_policy
    from seal.policy.nano import reader_policy

    policy = reader_policy()
    policy.save(tmp_path)
    recorded = (tmp_path / "policy.json").read_bytes()
    with torch.no_grad():
        next(policy.model.parameters()).add_(1e-3)
    policy.save(tmp_path)
    (tmp_path / "policy.json").write_bytes(recorded)
    with pytest.raises(ArtifactError, match="recorded"):
        load_policy(tmp_path)
