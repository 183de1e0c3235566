"""Who plays what: groups of rollouts, which are evolved, which item each leaves out. Pure functions of seeds."""

import random
from collections.abc import Sequence

from seal.core.seeds import RoundKey, seed_for
from seal.core.types import Phase, Task
from seal.interface.state import InterfaceState
from seal.rollout.episode import Request
from seal.settings.play import CollectParams


def choose_tasks(tasks: Sequence[Task], n: int, run_seed: int, depth: int, phase: str, step: int = 0) -> list[Task]:
    """`n` tasks without repeats (0, or more than there are: all), a pure function of (seed, depth, phase, step)."""
    if not 0 < n < len(tasks):
        return list(tasks)
    rng = random.Random(seed_for(run_seed, depth, f"choose-{phase}", step))
    return sorted(rng.sample(list(tasks), n), key=lambda task: task.task_id)


def requests_for(
    tasks: Sequence[Task],
    params: CollectParams,
    key: RoundKey,
    interface: InterfaceState = InterfaceState(),
    phase: Phase = "collect",
    step: int = 0,
) -> list[Request]:
    """`group_size` requests a task, adjacent; the first `evolved` play under `interface` in `mode`, the rest bare.

    Each evolved rollout leaves out one random item with probability `item_dropout`; that identifies items' uplift.
    With `start_turns` a group starts at a random user turn from the gold prefix (training tasks only, every arm alike).
    """
    items = [item.id for item in interface.active]
    requests = []
    for task in tasks:
        start = key.seed(f"start-{phase}", step, task.task_id) % len(task.turns) if params.start_turns else 0
        for sample in range(params.group_size):
            seed = key.seed(phase, step, task.task_id, sample)
            is_evolved = sample < params.evolved and bool(items)
            rng = random.Random(seed)
            dropped = rng.choice(items) if is_evolved and rng.random() < params.item_dropout else ""
            id_, mode = key.rollout_id(phase, step, task.task_id, sample), params.mode if is_evolved else "off"
            requests.append(Request(id_, task, sample, seed, mode, dropped, start))
    return requests
