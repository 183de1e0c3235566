"""Who plays what: groups of rollouts, which are evolved, which item each leaves out. Pure functions of seeds."""

import math
import random
from collections.abc import Mapping, Sequence

from seal.core.seeds import rollout_id, seed_for
from seal.core.types import Mode, Phase, Task
from seal.interface.state import InterfaceState
from seal.rollout.episode import Request


def choose_tasks(
    tasks: Sequence[Task],
    n: int,
    run_seed: int,
    depth: int,
    phase: str,
    step: int = 0,
    weights: Mapping[str, float] | None = None,
) -> list[Task]:
    """`n` tasks without repeats (0, or more than there are: all), a pure function of (seed, depth, phase, step) and
    of `weights` (task id -> how likely beside the others, above 0; None: all alike)."""
    if not 0 < n < len(tasks):
        return list(tasks)
    rng = random.Random(seed_for(run_seed, depth, f"choose-{phase}", step))
    if weights is None:
        chosen = rng.sample(list(tasks), n)
    else:  # Efraimidis and Spirakis, 2006: the n largest of u ** (1 / weight) are a weighted sample without repeats
        keys = {task.task_id: math.log(rng.random() or 1e-300) / weights[task.task_id] for task in tasks}
        chosen = sorted(tasks, key=lambda task: keys[task.task_id])[-n:]
    return sorted(chosen, key=lambda task: task.task_id)


def requests_for(
    tasks: Sequence[Task],
    group_size: int,
    round_id: str,
    depth: int,
    phase: Phase,
    run_seed: int,
    step: int = 0,
    evolved: int = 0,
    mode: Mode = "full",
    interface: InterfaceState = InterfaceState(),
    item_dropout: float = 0.0,
    start_turns: bool = False,
) -> list[Request]:
    """`group_size` requests a task, adjacent; the first `evolved` play under `interface` in `mode`, the rest bare.

    Each evolved rollout leaves out one random item with probability `item_dropout`; that identifies items' uplift.
    With `start_turns` a group starts at a random user turn from the gold prefix (training tasks only, every arm alike).
    """
    items = [item.id for item in interface.active]
    requests = []
    for task in tasks:
        turn_seed = seed_for(run_seed, depth, f"start-{phase}", step, task.task_id)
        start = turn_seed % len(task.turns) if start_turns else 0
        for sample in range(group_size):
            seed = seed_for(run_seed, depth, phase, step, task.task_id, sample)
            is_evolved = sample < evolved and bool(items)
            rng = random.Random(seed)
            dropped = rng.choice(items) if is_evolved and rng.random() < item_dropout else ""
            requests.append(
                Request(
                    rollout_id=rollout_id(round_id, phase, step, task.task_id, sample),
                    task=task,
                    sample=sample,
                    seed=seed,
                    mode=mode if is_evolved else "off",
                    dropped=dropped,
                    start_turn=start,
                )
            )
    return requests
