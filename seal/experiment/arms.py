"""The arms of experiments as data: what each changes in a round's parameters. All else is common to all arms."""

from collections.abc import Callable, Mapping
from typing import Any

from seal.workspace.params_file import merged

Change = dict[str, Any]


# Plain GRPO's update, and the learning rate that suits it where that is another than ours: nano's unlearns at 1e-3.
PLAIN: Change = {"negative": 1.0, "epsilon_high": 0.0, "rehearse": 0.0, "replay": 0, "loss": "dapo"}
PLAIN_RATE: Mapping[str, float] = {"nano": 3e-4}  # kind of policy -> train.lr
PLAIN_ARMS = ("vanilla", "vanilla_pos", "paper")
# The paper's weights to the letter, and its KL term (Table 4).
PUBLISHED: Change = {"alpha": 0.0, "normalise": False, "beta": 0.001, "reference": "start"}


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
    # our update on bare rollouts alone, whose successes are replayed as those under cues are
    "no_interface": lambda g: _change(0, "none", "within_group", "turn", True, {"replayed": "all"}),
    # the published run: static marks, none left out, trained as collected, one weight a trajectory by its formula
    "paper": lambda g: merged(
        _change(g, "published", "as_collected", "trajectory", False, {**PLAIN, **PUBLISHED}),
        {"collect": {"item_dropout": 0.0}},
    ),
    # everything the docs hide, from the first fresh step on; and cues of the same length that say nothing true
    "static": lambda g: _change(g // 2, "static", "within_group", "turn", True),
    "random": lambda g: _change(g // 2, "random", "within_group", "turn", True),
    # evolved cues: trained under the prompt the rollout saw; all under cues, trained under the bare prompt
    "as_collected": lambda g: _change(g, "evolved", "as_collected", "turn", False),
    "stripped": lambda g: _change(g, "evolved", "stripped", "turn", True),
    # ours without one of its parts, or with the interface differently
    "seal_no_weights": lambda g: _change(g // 2, "evolved", "within_group", "none", True),
    "seal_no_rehearsal": lambda g: merged(ARMS["seal"](g), {"train": {"rehearse": 0.0}}),
    "seal_no_replay": lambda g: merged(ARMS["seal"](g), {"train": {"replay": 0}}),
    "seal_negatives": lambda g: merged(ARMS["seal"](g), {"train": {"drop_negative": False, "negative": 1.0}}),
    "clipped": lambda g: merged(ARMS["seal"](g), {"train": {"loss": "dapo", "epsilon_high": 0.0}}),
    "kl": lambda g: merged(ARMS["seal"](g), {"train": {"beta": 0.02, "reference": "start"}}),
    "open_loop": lambda g: ARMS["seal"](g),
    "feedback_only": lambda g: merged(ARMS["seal"](g), {"collect": {"mode": "feedback_only"}}),
    "no_retirement": lambda g: merged(ARMS["seal"](g), {"evolve": {"retire_patience": 1000, "retire_uplift": -1.0}}),
    "gated": lambda g: merged(ARMS["seal"](g), {"evolve": {"gate": {"tasks": 16}}}),
    "fading": lambda g: merged(ARMS["seal"](g), {"train": {"fade": 0.2}}),
    # one side alone, and imitation of what static docs make possible
    "interface_only": lambda g: merged(ARMS["seal"](g), {"train": {"algorithm": "none"}}),
    "sft_static": lambda g: merged(ARMS["static"](g), {"train": {"algorithm": "sft", "condition": "stripped"}}),
    "seal": lambda g: _change(g // 2, "evolved", "within_group", "turn", True),
}
# What an arm does otherwise from its second round on: here what the first round's failures decided stays, cues and
# label factors.
AFTER_FIRST: Mapping[str, Change] = {"open_loop": {"evolve": {"interface": "kept"}, "train": {"ema": 0.0}}}


def changes_of(arm: str, group_size: int, rounds: int, policy: str) -> list[Change]:
    """What `arm` changes in each of its rounds. `policy`: the kind of the start's policy."""
    first = ARMS[arm](group_size)
    if arm in PLAIN_ARMS and policy in PLAIN_RATE:
        first = merged(first, {"train": {"lr": PLAIN_RATE[policy]}})
    return [merged(first, AFTER_FIRST.get(arm, {}) if depth else {}) for depth in range(rounds)]


# The first arm is what the others are compared with.
EXPERIMENTS: Mapping[str, tuple[str, ...]] = {
    "rises": ("seal",),
    "margin": ("vanilla", "vanilla_pos", "seal"),
    # what decides: is it the interface, that it evolves, how its rollouts are trained, or the update alone?
    "arms": (
        *("vanilla", "vanilla_pos", "no_interface", "paper", "static", "random", "as_collected", "stripped"),
        *("seal_no_weights", "seal"),
    ),
    # what each part of it is worth
    "parts": (
        *("vanilla", "seal_no_rehearsal", "seal_no_replay", "seal_negatives", "clipped", "kl"),
        *("open_loop", "feedback_only", "no_retirement", "gated", "fading", "interface_only", "sft_static", "seal"),
    ),
    "transfer": ("vanilla", "seal"),
}
