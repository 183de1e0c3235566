"""The policy a line of rounds begins with, made from its entry in params.yaml."""

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from seal.core.errors import ParamError
from seal.core.seeds import seed_for
from seal.env.base import Environment
from seal.settings.policies import POLICIES, HfParams
from seal.settings.typed import read

Progress = Callable[[dict[str, float]], None] | None


def write_start(
    spec: Mapping[str, Any],
    env: Environment | None,
    path: Path,
    seed: int = 0,
    on_progress: Progress = None,
    resume_dir: Path | None = None,
) -> list[float]:
    """Write the directory of a fresh policy; returns the losses of its warm start, if it has one.

    `resume_dir`: an ignored folder that belongs to exactly these inputs. Raises ParamError for an unknown kind.
    """
    kind = spec.get("kind")
    if kind not in POLICIES:
        raise ParamError("policy.kind", kind, f"known kinds: {', '.join(POLICIES)}")
    params = read(POLICIES[kind], spec, "policy")
    if kind == "scripted":
        path.mkdir(parents=True, exist_ok=True)
        given = {key: value for key, value in params if value != ()}
        (path / "policy.json").write_text(json.dumps(given, sort_keys=True) + "\n")
        return []
    if kind == "endpoint":
        from seal.policy.endpoint import EndpointPolicy

        EndpointPolicy(params).save(path)
        return []
    if kind == "nano":
        from seal.policy.nano import check_reads, reader_policy

        if env is not None:
            check_reads(env)
        reader_policy().save(path)
        return []
    return _write_hf(params, env, path, seed, on_progress, resume_dir)


def _write_hf(
    params: HfParams, env: Environment | None, path: Path, seed: int, on_progress: Progress, resume_dir: Path | None
) -> list[float]:
    from seal.policy.demonstrations import demonstrations
    from seal.policy.hf import new_hf
    from seal.policy.warmstart import warm_start

    policy, warm = new_hf(params), params.warm_start
    losses: list[float] = []
    if warm.tasks:
        if env is None:
            raise ParamError("policy.warm_start.tasks", warm.tasks, "a warm start needs an environment")
        tasks = [task for task in env.tasks() if task.split == "train" and not task.known_bad]
        rng = random.Random(seed_for(seed, 0, "warm-start"))
        chosen = sorted(rng.sample(tasks, min(warm.tasks, len(tasks))), key=lambda task: task.task_id)
        shown = demonstrations(env, chosen, policy.codec, max_tokens=warm.max_tokens)
        order = seed_for(seed, 0, "warm-start-order")
        losses = warm_start(policy.model, shown, warm, order, on_progress, resume_dir)
    policy.save(path)
    return losses
