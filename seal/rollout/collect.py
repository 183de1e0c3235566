"""The first phase of a round: play groups of training tasks under the round's interface."""

from collections.abc import Sequence
from dataclasses import dataclass

from seal.core.seeds import RoundKey
from seal.core.types import Phase, Rollout, Task
from seal.env.base import Environment
from seal.interface.state import InterfaceState
from seal.policy.base import Limits, Policy
from seal.rollout.engine import PlayRun, play
from seal.rollout.plan import choose_tasks, requests_for
from seal.settings.play import CollectParams


@dataclass(frozen=True, slots=True)
class Groups:
    """Which groups to play: those of a phase and its step, on `tasks` (None: the step's draw of training tasks)."""

    phase: Phase = "collect"
    step: int = 0
    tasks: Sequence[Task] | None = None


def training_tasks(env: Environment) -> list[Task]:
    """Known-bad tasks are left out."""
    return [task for task in env.tasks() if task.split == "train" and not task.known_bad]


def collect(
    env: Environment,
    policy: Policy,
    interface: InterfaceState,
    params: CollectParams,
    key: RoundKey,
    groups: Groups = Groups(),
    run: PlayRun = PlayRun(),
) -> list[Rollout]:
    """Rollouts of one batch of groups, groups adjacent.

    Training steps call it with phase "train" and their step: new tasks and seeds.
    """
    tasks, phase, step = groups.tasks, groups.phase, groups.step
    if tasks is None:
        tasks = choose_tasks(training_tasks(env), params.tasks, key.run_seed, key.depth, phase, step)
    requests = requests_for(tasks, params, key, interface, phase, step)
    limits = Limits(params.max_action_tokens, params.context)
    return play(env, policy, requests, interface, limits, params.temperature, run)
