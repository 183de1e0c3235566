"""First outputs of BFCL episodes by our sampler and by transformers' own generate: SmolLM2-135M with a LoRA.

    python benchmarks/bench_generate.py [--tasks 24] [--new 32] [--dtype bfloat16] [--repeats 3]

Both get the same contexts (compact docs and the first user message of test tasks, in the order of their ids), all in
one batch, and write exactly --new tokens each, greedily: contexts on the left side padded for transformers. Seconds are
the process's own CPU seconds. What rounding leaves of equal outputs is printed: in float32 all are.
"""

import argparse
import statistics
import time
import warnings

import torch

from seal.env import load_env
from seal.interface.state import InterfaceState
from seal.interface.view import View
from seal.policy.generate import Decoding, generate
from seal.policy.hf import new_hf
from seal.settings.policies import HfParams


def contexts_of(policy, tasks: int) -> list[list[int]]:
    env = load_env("bfcl")
    found = []
    for task in [task for task in env.tasks() if task.split == "test"][:tasks]:
        view = View(env, task, InterfaceState(), "off")
        found.append([*policy.codec.prompt(view.docs(0), view.hints()), *policy.codec.user(task.turns[0].message, ())])
    return found


def ours(policy, contexts: list[list[int]], new: int) -> list[list[int]]:
    return generate(policy.model, contexts, None, Decoding(new, 0.0, (-1,), policy.codec.pad_id))[0]


def stock(policy, contexts: list[list[int]], new: int) -> list[list[int]]:
    width = max(map(len, contexts))
    ids = torch.full((len(contexts), width), policy.codec.pad_id)
    mask = torch.zeros_like(ids)
    for i, context in enumerate(contexts):
        ids[i, width - len(context) :], mask[i, width - len(context) :] = torch.tensor(context), 1
    options = {"min_new_tokens": new, "max_new_tokens": new, "do_sample": False, "pad_token_id": policy.codec.pad_id}
    with torch.no_grad():
        return policy.model.generate(input_ids=ids, attention_mask=mask, **options)[:, width:].tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tasks", type=int, default=24)
    parser.add_argument("--new", type=int, default=32)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    policy = new_hf(HfParams(dtype=args.dtype), "cpu")
    contexts = contexts_of(policy, args.tasks)
    tokens = sum(map(len, contexts)) + args.new * len(contexts)
    rates: dict[str, list[float]] = {"ours": [], "stock": []}
    for _ in range(args.repeats):
        outputs = {}
        for name, run in (("ours", ours), ("stock", stock)):
            before = time.process_time()
            outputs[name] = run(policy, contexts, args.new)
            rates[name].append(tokens / (time.process_time() - before))
        alike = sum(a == b for a, b in zip(outputs["ours"], outputs["stock"], strict=True))
        print(f"{rates['ours'][-1]:.0f} against {rates['stock'][-1]:.0f} tokens a second, {alike} equal", flush=True)
    ratios = sorted(a / b for a, b in zip(rates["ours"], rates["stock"], strict=True))
    sizes = sorted(map(len, contexts))
    print(
        f"{len(contexts)} contexts of {sizes[0]} to {sizes[-1]} tokens, {args.new} more each: "
        f"{statistics.median(rates['ours']):.0f} against {statistics.median(rates['stock']):.0f} tokens a CPU second, "
        f"{statistics.median(ratios):.1f} times ({ratios[0]:.1f} to {ratios[-1]:.1f})"
    )


if __name__ == "__main__":
    main()
