"""The batched engine: all live episodes answer together, so a policy with weights sees one batch a step."""

from collections.abc import Callable, Sequence

from seal.core.errors import ArtifactError
from seal.core.types import Rollout
from seal.env.base import Environment
from seal.interface.state import InterfaceState
from seal.policy.base import Action, Limits, Policy
from seal.rollout.action_cache import ActionLog
from seal.rollout.episode import Episode, Request

__all__ = ["Limits", "Request", "play"]


def play(
    env: Environment,
    policy: Policy,
    requests: Sequence[Request],
    interface: InterfaceState = InterfaceState(),
    limits: Limits = Limits(),
    temperature: float = 1.0,
    on_progress: Callable[[int], None] | None = None,
    batch: int = 256,
    log: ActionLog | None = None,
) -> list[Rollout]:
    """Play every request to its end, at most `batch` at once; rollouts come in the order of the requests.

    `on_progress` gets the number of episodes that ended since its last call. A rollout that fails is a rollout with a
    stop reason; only faults of the code or the configuration raise. `log` keeps finished batches: the same call after a
    kill asks the policy for the others alone.
    """
    rollouts: list[Rollout] = []
    # An environment of processes bounds how many live at once, and so does the memory of a policy with long contexts.
    of_env, of_policy = getattr(env, "live_sessions", None), getattr(policy, "at_once", None)
    batch = min(batch, of_env or batch, of_policy(limits) if of_policy else batch)
    policy_hash, ended = policy.hash, on_progress or (lambda n: None)  # of all weights: once, not once a rollout
    for start in range(0, len(requests), batch):
        part = requests[start : start + batch]
        asked = [(r.rollout_id, r.task.task_id, r.sample, r.seed, r.mode, r.dropped, r.start_turn) for r in part]
        decided_by = policy_hash, interface.hash, limits, temperature, asked
        episodes = [Episode(env, policy, policy_hash, request, interface) for request in part]
        if log and (kept := log.read(*decided_by)) is not None:
            for episode, actions in zip(episodes, kept, strict=True):
                _retake(episode, actions, log)
            ended(len(part))
        else:
            taken = _play(policy, episodes, limits, temperature, ended)
            if log:
                log.write(taken, *decided_by)
        rollouts += [episode.rollout() for episode in episodes]
    return rollouts


def _retake(episode: Episode, actions: Sequence[Action], log: ActionLog) -> None:
    """Play an episode by what the policy said before."""
    taken = 0
    while not episode.stop_reason and taken < len(actions):
        episode.take(actions[taken])
        taken += 1
    if not episode.stop_reason or taken < len(actions):
        remedy = f"the environment has changed since then: rm -r {log.folder}"
        raise ArtifactError("kept actions", f"{log.folder}: {episode.request.rollout_id} goes another way", remedy)


def _play(
    policy: Policy, episodes: Sequence[Episode], limits: Limits, temperature: float, ended: Callable[[int], None]
) -> list[list[Action]]:
    """Bring all episodes to their end, in step with each other. Returns what the policy said in each."""
    taken: list[list[Action]] = [[] for _ in episodes]
    live = [i for i, episode in enumerate(episodes) if not episode.stop_reason]
    while live:
        actions = policy.act([episodes[i].observation() for i in live], temperature, limits)
        for i, action in zip(live, actions, strict=True):
            episodes[i].take(action)
            taken[i].append(action)
        still = [i for i in live if not episodes[i].stop_reason]
        if len(still) < len(live):
            ended(len(live) - len(still))
        live = still
    return taken
