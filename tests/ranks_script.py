"""Train a tiny adapter as one of several processes, or alone: `python ranks_script.py OUT MINIBATCHES MICRO_BATCH`."""

import json
import sys
import time
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from train_cases import group, tiny_policy

from seal.settings.train import TrainParams
from seal.train.loop import Loop
from seal.train.ranks import rank
from seal.train.settings import OptimSettings

STEPS = 3


def fresh(step, seen=(), n=0):
    time.sleep(0.01)
    return [*group(f"s{step}", 2, 3, ("full", "off")), *group(f"z{step}", 4, 2), *group(f"n{step}", 0, 3)]


def main(out: Path, minibatches: int, micro_batch: int) -> None:
    torch.set_num_threads(1)
    policy = tiny_policy()
    torch.manual_seed(1)
    config = LoraConfig(r=2, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
    policy.model = get_peft_model(policy.model, config)
    params = TrainParams(steps=STEPS, beta=0.01, num_iterations=2)
    loop = Loop(fresh(0), fresh, params, "r1")
    settings = OptimSettings(
        STEPS,
        14,
        lr=1e-2,
        minibatches=minibatches,
        num_iterations=2,
        beta=0.01,
        micro_batch=micro_batch,
        seed=7,
        schedule="linear",
    )
    loop.run(policy, settings, out / "state")
    if rank().number == 0:
        trained = {name: p.detach() for name, p in policy.model.named_parameters() if p.requires_grad}
        save_file(trained, out / "adapter.safetensors")
        (out / "curve.json").write_text(json.dumps(loop.result.curve))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
