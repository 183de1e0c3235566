"""Train a saved policy, its base sharded where the launch asks for it: `python shards_script.py START OUT MICRO STOP`.

A run with STOP >= 0 is killed at the end of that step, before its state is saved.
"""

import json
import os
import sys
from dataclasses import replace
from pathlib import Path

import torch
from train_cases import group, hand_made

from seal.core.types import Task, UserTurn
from seal.policy.base import Limits, Observation
from seal.policy.hf import load_hf
from seal.policy.shards import playing, sharded
from seal.settings.train import TrainParams
from seal.train.loop import train_round
from seal.train.ranks import gathered, rank

STEPS = 3
TASK = Task("t", "shop", "c", "s", "train", (UserTurn("hi"),), {}, ())


def play(policy, n):
    """`n` actions one by one, as many passes as it takes."""
    seen = [Observation(TASK, i, seed=i, turn=0, step=0, ids=policy.codec.encode("system")) for i in range(n)]
    with playing(policy):
        return [policy.act([one], 1.0, Limits(max_action_tokens=6, context=120))[0].ids for one in seen]


def main(start: Path, out: Path, micro_batch: int, stop: int) -> None:
    torch.set_num_threads(1)
    policy = load_hf(start, device="cpu")
    frozen = [p for p in policy.model.parameters() if not p.requires_grad]
    held = sum(p.to_local().numel() if hasattr(p, "to_local") else p.numel() for p in frozen)
    about = {"sharded": sharded(policy.model), "held": gathered(held), "played": []}

    def rollouts(policy, step, others_than=(), n=0):
        own = range(4)[rank().number :: rank().world] if not step else range(3 * rank().number + 1)
        about["played"].append(play(policy, len(own)))  # not equally many
        rows = [*group(f"s{step}", 2, 3, ("full", "off")), *group(f"z{step}", 4, 2), *group(f"n{step}", 0, 3)]
        about.setdefault("hashes", []).append(policy.hash)
        return rows

    def progress(row):
        if row["step"] == stop:
            os._exit(9)

    params = TrainParams(
        **{"steps": STEPS, "lr": 3e-3, "beta": 0.01, "num_iterations": 2, "loss": "dapo", "epsilon_high": 0.0},
        **{"minibatches": 2, "micro_batch": micro_batch},
    )
    own_hash, collected = policy.hash, rollouts(policy, 0)
    collected = [replace(j, rollout=replace(j.rollout, policy_hash=own_hash)) for j in collected]
    state = out.with_suffix(".state")
    result = train_round(policy, collected, hand_made(rollouts), params, resume_dir=state, on_progress=progress)
    about["hash"], about["curve"] = gathered(policy.hash), result.curve
    if rank().number == 0:
        policy.save(out)
        out.with_suffix(".json").write_text(json.dumps(about))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
