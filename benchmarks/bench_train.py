"""Tokens trained a second by our GRPO step and by the stock trl.GRPOTrainer's, on one batch: SmolLM2-135M with a LoRA.

    python benchmarks/bench_train.py [--groups 2] [--size 4] [--tokens 768] [--dtype bfloat16] [--repeats 3]

The batch is groups of BFCL episodes under compact docs, as a round collects them: a prompt with tool docs, calls that
are trained, results that are not, rollouts of one group ending at different places. Every rollout is in the loss of
both. Both get the ids, the masks, and rewards that give the same advantages; no gradient checkpointing, no KL term,
one update. Timed from the moment the rollouts are there to the end of the update. CPU seconds are the process's own.
"""

import argparse
import os
import random
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial

import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from seal.env import load_env
from seal.policy.demonstrations import demonstrations
from seal.policy.hf import new_hf
from seal.policy.optim import adamw
from seal.settings.policies import HfParams
from seal.settings.train import TrainParams
from seal.train.advantage import group_advantages
from seal.train.batch import Batch, TrainRow
from seal.train.grpo import train
from seal.train.optimise import Steps, UpdatePlan

LR = 1e-4


def rollouts(policy, groups: int, size: int, tokens: int, seed: int = 0) -> list[TrainRow]:
    """Groups of `size` rows, adjacent, at most `tokens` long, without advantages."""
    rng, env = random.Random(seed), load_env("bfcl")
    tasks = [task for task in env.tasks() if task.split == "train" and not task.known_bad]
    rng.shuffle(tasks)
    rows: list[TrainRow] = []
    for task in tasks:
        made = demonstrations(env, [task], policy.codec, max_tokens=tokens)
        if made and sum(made[0].mask) >= 4 * size:
            ids, mask = made[0]
            start = mask.index(1)
            ends = [i + 1 for i in range(start, len(ids)) if mask[i] and (i + 1 == len(ids) or not mask[i + 1])]
            for _ in range(size):
                end = rng.choice(ends[len(ends) // 3 :])
                own = tuple(mask[start:end])
                rows.append(TrainRow("", tuple(ids[:start]), tuple(ids[start:end]), own, (0.0,) * len(own), own))
        if len(rows) == groups * size:
            return rows
    raise SystemExit("too few tasks fit: raise --tokens")


def ours(policy, rows: list[TrainRow], advantages: list[float], optimizer, clock: Callable[[str], None]) -> float:
    """One step; its loss."""
    given = tuple(
        TrainRow(r.rollout_id, r.prompt_ids, r.completion_ids, r.loss_mask, r.logprobs, r.turn_of_token,
                 tuple(a * m for m in r.loss_mask))
        for r, a in zip(rows, advantages, strict=True)
    )  # fmt: skip
    groups = group_advantages([1.0, 0.0], [0, 0])
    batch = Batch(given, (), groups, sum(sum(r.loss_mask) for r in rows), 0.0, 0, 0)
    found = {}

    def batch_of_step(_: int) -> Batch:
        clock("start")
        return batch

    def after_step(_: int, metrics: dict) -> None:
        clock("end")
        found.update(metrics)

    same = {"loss": "dapo", "epsilon_high": 0.0, "schedule": "constant"}
    plan = UpdatePlan(TrainParams(steps=1, lr=LR, minibatches=1, **same), len(rows))
    train(policy, plan, Steps(batch_of_step, after_step), optimizer)
    return found["loss"]


def stock(policy, rows: list[TrainRow], rewards: list[float], size: int, optimizer, clock) -> float:
    """The same step by TRL's own trainer, its rollouts given; its loss."""

    class Clock(TrainerCallback):
        def on_step_end(self, args, state, control, **_):
            clock("end")

    class Stock(GRPOTrainer):
        def training_step(self, *args, **more):
            self.seen = super().training_step(*args, **more)
            return self.seen

    def roll_out(prompts, trainer):
        clock("start")
        trainer.model.train()
        return {
            "prompt_ids": [list(r.prompt_ids) for r in rows],
            "completion_ids": [list(r.completion_ids) for r in rows],
            "logprobs": [list(r.logprobs) for r in rows],
            "env_mask": [list(r.loss_mask) for r in rows],
        }

    with tempfile.TemporaryDirectory() as folder:
        config = GRPOConfig(
            output_dir=folder,
            per_device_train_batch_size=len(rows),
            gradient_accumulation_steps=1,
            num_generations=size,
            max_steps=1,
            learning_rate=LR,
            lr_scheduler_type="constant",
            beta=0.0,
            loss_type="dapo",
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            shuffle_dataset=False,
            dataloader_pin_memory=False,
            logging_strategy="no",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        trainer = Stock(
            policy.model,
            reward_funcs=[lambda prompts, **_: list(rewards)],
            args=config,
            train_dataset=Dataset.from_dict({"prompt": [str(i) for i in range(len(rows) // size)]}),
            processing_class=policy.tokenizer,
            rollout_func=roll_out,
            optimizers=(optimizer, None),
            callbacks=[Clock()],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
        return float(trainer.seen)


def measured(run: Callable[[Callable[[str], None]], float]) -> tuple[float, float, float]:
    """(loss, seconds, CPU seconds) of what lies between the two calls of the clock."""
    at: dict[str, tuple[float, float]] = {}
    loss = run(lambda name: at.__setitem__(name, (time.perf_counter(), time.process_time())))
    return loss, *(b - a for a, b in zip(at["start"], at["end"], strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--groups", type=int, default=2)
    parser.add_argument("--size", type=int, default=4, help="rollouts a group")
    parser.add_argument("--tokens", type=int, default=768, help="the most of a rollout, prompt included")
    parser.add_argument("--dtype", default="bfloat16", help="of the base; the LoRA is kept in float32")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    warnings.simplefilter("ignore")
    spec = HfParams(dtype=args.dtype)
    rows = rollouts(new_hf(spec, device="cpu"), args.groups, args.size, args.tokens)
    rewards = [float(i % args.size == 0) for i in range(len(rows))]  # one of a group passes
    keys = [i // args.size for i in range(len(rows))]
    advantages = group_advantages(rewards, keys).values.tolist()
    n = sum(sum(r.loss_mask) for r in rows)
    longest = max(len(r.prompt_ids) + len(r.completion_ids) for r in rows)
    total = sum(len(r.prompt_ids) + len(r.completion_ids) for r in rows)
    print(
        f"{len(rows)} rollouts in {args.groups} groups, {total} tokens, {n} trained, the longest {longest}", flush=True
    )
    speeds: dict[str, list[tuple[float, float]]] = {"stock": [], "ours": []}
    gradients: dict[str, torch.Tensor] = {}
    for _ in range(args.repeats):
        for name in speeds:
            policy = new_hf(spec, device="cpu")
            optimizer = adamw(policy.model, LR)
            if name == "stock":
                run = partial(stock, policy, rows, rewards, args.size, optimizer)
            else:
                run = partial(ours, policy, rows, advantages, optimizer)
            loss, seconds, cpu = measured(run)
            speeds[name].append((n / seconds, n / cpu))
            # After one step AdamW's first moment is a tenth of the (clipped) gradient.
            gradients[name] = torch.cat([10 * state["exp_avg"].flatten() for state in optimizer.state.values()])
            norm = float(gradients[name].norm())
            print(f"{name:<6} loss {loss:+.6f}, gradient {norm:.4f}  {seconds:6.1f} s, {cpu:6.1f} CPU s", flush=True)
    for name, found in speeds.items():
        for what, values in zip(("a second", "a CPU second"), zip(*found, strict=True), strict=True):
            print(f"{name:<6} {statistics.median(values):7.2f} tokens {what} ({min(values):.2f} to {max(values):.2f})")
    for what, at in (("a second", 0), ("a CPU second", 1)):
        ratios = [b[at] / a[at] for a, b in zip(speeds["stock"], speeds["ours"], strict=True)]
        print(f"ours / stock, tokens {what}: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
    cosine = torch.nn.functional.cosine_similarity(gradients["ours"].double(), gradients["stock"].double(), dim=0)
    print(f"the two gradients: cosine {cosine:.5f}")


if __name__ == "__main__":
    main()
