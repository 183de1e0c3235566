"""The arms of experiments as data: what each changes in a round's parameters. All else is common to all arms."""

from collections.abc import Callable, Mapping
from typing import Any

Change = dict[str, Any]


# Plain GRPO's update. Its own learning rate: at the higher one of our arms, with negative advantages, it unlearns.
PLAIN: Change = {"lr": 3e-4, "negative": 1.0, "epsilon_high": 0.0, "rehearse": 0.0, "replay": 0, "loss": "dapo"}


def _change(
    evolved: int, interface: str, condition: str, weights: str, drop_negative: bool | str, update: Change | None = None
) -> Change:
    return {
        "collect": {"evolved": evolved},
        "evolve": {"interface": interface},
        "train": {"condition": condition, "weights": weights, "drop_negative": drop_negative, **(update or {})},
    }


# Each takes the group size G: an arm that has no bare rollouts plays all of a group under its interface.
ARMS: Mapping[str, Callable[[int], Change]] = {
    # plain GRPO on bare rollouts; with negative advantages dropped, as a control for what our arms drop
    "vanilla": lambda g: _change(0, "none", "as_collected", "none", False, PLAIN),
    "vanilla_pos": lambda g: _change(0, "none", "as_collected", "none", "all", PLAIN),
    # the published run: static marks, trained as collected, one weight a trajectory
    "paper": lambda g: _change(g, "published", "as_collected", "trajectory", False, PLAIN),
    # evolved cues, trained under the prompt the rollout saw
    "as_collected": lambda g: _change(g, "evolved", "as_collected", "turn", False, PLAIN),
    # everything the docs hide, from the first step on; and cues of the same length that say nothing true
    "static": lambda g: _change(g // 2, "static", "within_group", "turn", True),
    "random": lambda g: _change(g // 2, "random", "within_group", "turn", True),
    # ours, and ours without one of its parts
    "stripped": lambda g: _change(g, "evolved", "stripped", "turn", True),
    "seal_no_weights": lambda g: _change(g // 2, "evolved", "within_group", "none", True),
    "seal_no_rehearsal": lambda g: _change(g // 2, "evolved", "within_group", "turn", True, {"rehearse": 0.0}),
    "seal_no_replay": lambda g: _change(g // 2, "evolved", "within_group", "turn", True, {"replay": 0}),
    "seal": lambda g: _change(g // 2, "evolved", "within_group", "turn", True),
}

# The first arm is what the others are compared with.
EXPERIMENTS: Mapping[str, tuple[str, ...]] = {
    "rises": ("seal",),
    "margin": ("vanilla", "vanilla_pos", "seal"),
    "arms": tuple(ARMS),
    "transfer": ("vanilla", "seal"),
}
