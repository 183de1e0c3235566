"""The batched engine: all live episodes answer together, so a policy with weights sees one batch a step."""

from collections.abc import Callable, Sequence

from seal.core.types import Rollout
from seal.env.base import Environment
from seal.interface.state import InterfaceState
from seal.policy.base import Limits, Policy
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
) -> list[Rollout]:
    """Play every request to its end, at most `batch` at once; rollouts come in the order of the requests.

    `on_progress` gets the number of episodes that ended since its last call. A rollout that fails is a rollout with a
    stop reason; only faults of the code or the configuration raise.
    """
    rollouts: list[Rollout] = []
    batch = min(batch, getattr(env, "live_sessions", None) or batch)  # an environment of processes bounds their number
    policy_hash = policy.hash  # of all weights: once, not once a rollout
    for start in range(0, len(requests), batch):
        episodes = [
            Episode(env, policy, policy_hash, request, interface) for request in requests[start : start + batch]
        ]
        live = [episode for episode in episodes if not episode.stop_reason]
        while live:
            actions = policy.act([episode.observation() for episode in live], temperature, limits)
            for episode, action in zip(live, actions, strict=True):
                episode.take(action)
            still = [episode for episode in live if not episode.stop_reason]
            if on_progress and len(still) < len(live):
                on_progress(len(live) - len(still))
            live = still
        rollouts += [episode.rollout() for episode in episodes]
    return rollouts
