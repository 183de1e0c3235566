"""A run, its lines of rounds, and one round: what the sections of params.yaml are put together from."""

from typing import Any

from seal.settings.evolve import DiagnoseParams, EvolveParams
from seal.settings.play import CollectParams, EvaluateParams
from seal.settings.train import TrainParams
from seal.settings.typed import Settings, ranged

RECIPE = 1  # version of what the stages compute; a round keeps the one it was made with


class RunParams(Settings):
    """What holds for all stages."""

    seed: int = ranged(0, 0)
    "Decides every draw."
    threads: int = ranged(1, 1, 256)
    "Threads of torch; more change seconds, not bytes, on one machine."


class FlowParams(Settings):
    """When `seal run` stops adding to a line of rounds."""

    max_rounds: int = ranged(20, 1)
    "After so many rounds."
    patience: int = ranged(3, 1)
    "After so many rounds without gain of the dev score."
    min_gain: float = ranged(0.0, 0.0, 1.0)
    "A smaller difference of the dev score is no gain."


class Start(Settings):
    """Where a line of rounds starts: a policy in an environment, evaluated once."""

    env: str
    "One of `envs`."
    policy: dict[str, Any]
    "Its `kind` and what that kind takes; see seal.settings.policies."
    recipe: int = ranged(RECIPE, 1)
    "Version of what the stages compute."
    evaluate: EvaluateParams = EvaluateParams()
    "How it is measured."


class Defaults(Settings):
    """What the first round of a line takes where nothing else is said."""

    collect: CollectParams = CollectParams()
    "The rollouts to learn from."
    diagnose: DiagnoseParams = DiagnoseParams()
    "How failures are labelled."
    evolve: EvolveParams = EvolveParams()
    "How the interface changes."
    train: TrainParams = TrainParams()
    "How the policy is updated."
    evaluate: EvaluateParams = EvaluateParams()
    "How the round is measured."


class Round(Settings):
    """One resolved round."""

    parent: str
    "The round, or the start, that it goes on from."
    env: str
    "One of `envs`: that of the start of its line."
    collect: CollectParams
    "The rollouts to learn from."
    diagnose: DiagnoseParams
    "How failures are labelled."
    evolve: EvolveParams
    "How the interface changes."
    train: TrainParams
    "How the policy is updated."
    evaluate: EvaluateParams
    "How the round is measured."
    recipe: int = ranged(RECIPE, 1)
    "Version of what the stages compute."
