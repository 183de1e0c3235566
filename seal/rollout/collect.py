"""The first phase of a round: play groups of training tasks under the round's interface."""

from collections.abc import Callable, Sequence

from seal.core.types import Phase, Rollout, Task
from seal.env.base import Environment
from seal.interface.state import InterfaceState
from seal.policy.base import Limits, Policy
from seal.rollout.action_cache import ActionLog
from seal.rollout.engine import play
from seal.rollout.plan import choose_tasks, requests_for


def training_tasks(env: Environment) -> list[Task]:
    return [task for task in env.tasks() if task.split == "train" and not task.known_bad]


def collect(
    env: Environment,
    policy: Policy,
    interface: InterfaceState,
    params,
    round_id: str,
    depth: int,
    run_seed: int,
    phase: Phase = "collect",
    step: int = 0,
    on_progress: Callable[[int], None] | None = None,
    chosen: Sequence[Task] | None = None,
    log: ActionLog | None = None,
) -> list[Rollout]:
    """Rollouts of one batch of groups, groups adjacent. `params`: seal.settings.params.CollectParams.

    Training steps call it with phase "train" and their step: fresh tasks and seeds. Known-bad tasks are left out.
    `chosen`: the tasks to play, instead of a draw. `log`: see seal.rollout.engine.play.
    """
    if chosen is None:
        chosen = choose_tasks(training_tasks(env), params.tasks, run_seed, depth, phase, step)
    requests = requests_for(
        chosen,
        params.group_size,
        round_id,
        depth,
        phase,
        run_seed,
        step,
        params.evolved,
        params.mode,
        interface,
        params.item_dropout,
        params.start_turns,
    )
    limits = Limits(params.max_action_tokens, params.context)
    return play(env, policy, requests, interface, limits, params.temperature, on_progress, log=log)
