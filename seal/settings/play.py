"""How many tasks are played, and how: to learn from (collect), and to be measured on (evaluate)."""

from typing import Annotated

from seal.core.types import Mode, Split
from seal.settings.typed import Absent, Settings, ranged


class CollectParams(Settings):
    """Groups of rollouts of one task each; some of a group see the evolved interface, the rest the bare docs."""

    tasks: int = ranged(16, 1)
    "How many groups, each of another task."
    group_size: int = ranged(8, 2, 1024)
    "Rollouts of a group."
    evolved: int = ranged(3, 0)
    "The first so many rollouts of a group are under the interface, the rest bare; at most `group_size`."
    mode: Mode = "full"
    "What of the interface an evolved rollout sees: all of it, the docs' part, the error messages' part, or nothing."
    temperature: float = ranged(1.0, 0.0, 10.0)
    "The sampler's; 0: always the most probable token."
    max_action_tokens: int = ranged(24, 1)
    "Most tokens of one output of the policy."
    context: int = ranged(512, 16)
    "Most tokens of a whole episode; more than `max_action_tokens`."
    item_dropout: float = ranged(0.5, 0.0, 1.0)
    "Probability that an evolved rollout leaves out one random cue."
    start_turns: bool = False
    "Whether a group starts at a random user turn, the turns before it played by the gold program."


class EvaluateParams(Settings):
    """Held-out play: the interface off, and on where that is asked for."""

    split: Split = "test"
    "Which tasks: those of this split."
    tasks: int = ranged(0, 0)
    "How many of them (0: all)."
    trials: int = ranged(1, 1, 1000)
    "Rollouts of each task."
    temperature: float = ranged(0.0, 0.0, 10.0)
    "The sampler's; 0: always the most probable token."
    measure_on: bool = True
    "Whether the tasks are played with the interface on as well."
    max_action_tokens: int = ranged(24, 1)
    "Most tokens of one output of the policy."
    context: int = ranged(512, 16)
    "Most tokens of a whole episode; more than `max_action_tokens`."
    measure_dev: Annotated[bool, Absent(True)] = True
    "Whether the dev split is played, too: its score decides when a line of rounds ends and which round is best."
