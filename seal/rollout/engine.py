"""The batched engine: all live episodes answer together, so a policy with weights sees one batch a step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seal.core.errors import ArtifactError
from seal.core.types import Rollout
from seal.env.base import Environment
from seal.interface.state import InterfaceState
from seal.policy.base import Action, Limits, Policy
from seal.rollout.episode import Episode, Request
from seal.rollout.play_cache import PlayCache

__all__ = ["Limits", "PlayRun", "Request", "play"]


@dataclass(frozen=True, slots=True)
class PlayRun:
    """How requests are played; none of it decides what comes out.

    on_progress  gets the number of episodes that ended since its last call
    batch        how many play at once, at most
    cache        keeps finished batches: the same call after a kill asks the policy for the others alone
    """

    on_progress: Callable[[int], None] | None = None
    batch: int = 256
    cache: PlayCache | None = None

    def ended(self, episodes: int) -> None:
        if self.on_progress:
            self.on_progress(episodes)


def play(
    env: Environment,
    policy: Policy,
    requests: Sequence[Request],
    interface: InterfaceState = InterfaceState(),
    limits: Limits = Limits(),
    temperature: float = 1.0,
    run: PlayRun = PlayRun(),
) -> list[Rollout]:
    """Play every request to its end; rollouts come in the order of the requests.

    A rollout that fails is a rollout with a stop reason; only faults of the code or the configuration raise.
    """
    rollouts: list[Rollout] = []
    # An environment of processes bounds how many live at once, and so does the memory of a policy with long contexts.
    batch = min(n for n in (run.batch, env.live_sessions, policy.live_episodes(limits)) if n is not None)
    policy_hash = policy.hash  # of all weights: once, not once a rollout
    for start in range(0, len(requests), batch):
        part = requests[start : start + batch]
        wanted = [(r.rollout_id, r.task.task_id, r.sample, r.seed, r.mode, r.dropped, r.start_turn) for r in part]
        decided_by = policy_hash, interface.hash, limits, temperature, wanted
        episodes = [Episode(env, policy, policy_hash, request, interface) for request in part]
        if run.cache and (cached := run.cache.read(*decided_by)) is not None:
            for episode, actions in zip(episodes, cached, strict=True):
                _replay(episode, actions, run.cache)
            run.ended(len(part))
        else:
            actions = _play(policy, episodes, limits, temperature, run)
            if run.cache:
                run.cache.write(actions, *decided_by)
        rollouts += [episode.rollout() for episode in episodes]
    return rollouts


def _replay(episode: Episode, actions: Sequence[Action], cache: PlayCache) -> None:
    """Play an episode by what the policy said before."""
    left = list(reversed(actions))
    while left and not episode.stop_reason:
        episode.take(left.pop())
    if left or not episode.stop_reason:
        remedy = f"the environment has changed since then: rm -r {cache.folder}"
        raise ArtifactError("kept actions", f"{cache.folder}: {episode.request.rollout_id} goes another way", remedy)


def _play(
    policy: Policy, episodes: Sequence[Episode], limits: Limits, temperature: float, run: PlayRun
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
            run.ended(len(live) - len(still))
        live = still
    return taken
