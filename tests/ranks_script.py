"""Train a tiny adapter as one of several processes, or alone: `python ranks_script.py OUT MINIBATCHES MICRO_BATCH`."""

import json
import sys
import time
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from train_cases import group, hand_made, tiny_policy

from seal.settings.train import TrainParams
from seal.train.loop import train_round
from seal.train.ranks import rank

STEPS = 3


def rollouts(policy, step, others_than=(), n=0):
    time.sleep(0.01)
    return [*group(f"s{step}", 2, 3, ("full", "off")), *group(f"z{step}", 4, 2), *group(f"n{step}", 0, 3)]


def main(out: Path, minibatches: int, micro_batch: int) -> None:
    torch.set_num_threads(1)
    policy = tiny_policy()
    torch.manual_seed(1)
    config = LoraConfig(r=2, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    policy.model = get_peft_model(policy.model, config)
    params = TrainParams(
        **{"steps": STEPS, "lr": 1e-2, "beta": 0.01, "num_iterations": 2, "loss": "dapo", "epsilon_high": 0.0},
        **{"minibatches": minibatches, "micro_batch": micro_batch},
    )
    result = train_round(policy, rollouts(policy, 0), hand_made(rollouts), params, resume_dir=out / "state")
    if rank().number == 0:
        trained = {name: p.detach() for name, p in policy.model.named_parameters() if p.requires_grad}
        save_file(trained, out / "adapter.safetensors")
        (out / "curve.json").write_text(json.dumps(result.curve))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
