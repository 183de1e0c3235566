"""params.yaml as typed, range-checked, immutable values. The fields' defaults are the library's; see README for meanings.

An entry of `rounds` is *resolved*: every key is written out when the round is added, so that changing `defaults` (or the
library's defaults) never changes a round that exists.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from seal.core.errors import ParamError
from seal.core.labels import DEFAULT_PRIORITY, DEFAULT_UTILITY, FAILURES, Label
from seal.core.types import Mode, Split
from seal.core.typed import check_keys, ranged, read

RECIPE = 1  # version of what the stages compute; a round keeps the one it was made with
ROUND_ID = re.compile(r"[a-z][a-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class RunParams:
    """`seed` decides every draw; `threads` is torch's number of threads (it changes seconds, not bytes, on one machine)."""

    seed: int = ranged(0, 0, 2**31)
    threads: int = ranged(1, 1, 256)


@dataclass(frozen=True, slots=True)
class FlowParams:
    """When a line of rounds stops: after `max_rounds`, or when the dev score has not gained `min_gain` for `patience` rounds."""

    max_rounds: int = ranged(20, 1)
    patience: int = ranged(3, 1)
    min_gain: float = ranged(0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class DomainParams:
    """A built-in domain: seed of its task generator and number of scenarios a split."""

    seed: int = ranged(0, 0)
    train: int = ranged(60, 1)
    dev: int = ranged(15, 0)
    test: int = ranged(50, 1)


@dataclass(frozen=True, slots=True)
class BfclParams:
    """BFCL V3 multi-turn has nothing to set: its tasks and its split are pinned."""


ENVS: Mapping[str, type] = {"shop": DomainParams, "bfcl": BfclParams}


@dataclass(frozen=True, slots=True)
class EvaluateParams:
    """Held-out play, interface off (`measure_on`: and on). `tasks` 0 is all of the split; tokens as in CollectParams."""

    split: Split = "test"
    tasks: int = ranged(0, 0)
    trials: int = ranged(1, 1, 1000)
    temperature: float = ranged(0.0, 0.0, 10.0)
    measure_on: bool = True
    max_action_tokens: int = ranged(24, 1)
    context: int = ranged(512, 16)


@dataclass(frozen=True, slots=True)
class CollectParams:
    """`tasks` groups of `group_size` rollouts, the first `evolved` of each under the interface in `mode`, the rest bare.

    An evolved rollout leaves out one random cue with probability `item_dropout`. `max_action_tokens`: cap of one policy
    output; `context`: of the whole episode. `start_turns`: groups start at a random user turn from the gold prefix.
    """

    tasks: int = ranged(16, 1)
    group_size: int = ranged(8, 2, 1024)
    evolved: int = ranged(3, 0)
    mode: Mode = "full"
    temperature: float = ranged(1.0, 0.0, 10.0)
    max_action_tokens: int = ranged(24, 1)
    context: int = ranged(512, 16)
    item_dropout: float = ranged(0.15, 0.0, 1.0)
    start_turns: bool = False


@dataclass(frozen=True, slots=True)
class DiagnoseParams:
    """Which label a turn is known by when it has several, first wins."""

    priority: tuple[str, ...] = tuple(map(str, DEFAULT_PRIORITY))


@dataclass(frozen=True, slots=True)
class GateParams:
    """Paired rollouts that new cues must not hurt: on how many probe tasks (0: no gate)."""

    tasks: int = ranged(0, 0)


@dataclass(frozen=True, slots=True)
class EvolveParams:
    """How the interface changes. `token_budget`: of all cues together; a new cue needs `min_support` failing turns."""

    interface: Literal["evolved", "none", "static", "published", "random"] = "evolved"
    token_budget: int = ranged(400, 0)
    max_new: int = ranged(12, 0)
    min_support: int = ranged(2, 1)
    min_rate: float = ranged(0.0, 0.0, 1.0)
    retire_rate: float = ranged(0.0, 0.0, 1.0)
    retire_patience: int = ranged(2, 1)
    gate: GateParams = field(default_factory=GateParams)


@dataclass(frozen=True, slots=True)
class TrainParams:
    """The policy's update. See seal.train for `condition`, `weights` and the closed loop's `alpha`, `ema`, `clip`."""

    algorithm: Literal["grpo", "sft", "none"] = "grpo"
    condition: Literal["within_group", "stripped", "as_collected"] = "within_group"
    steps: int = ranged(10, 0)
    lr: float = ranged(3e-4, 0.0, 1.0)
    weights: Literal["turn", "trajectory", "none"] = "turn"
    drop_negative: bool = True
    epsilon: float = ranged(0.2, 0.0, 1.0)
    beta: float = ranged(0.0, 0.0)
    minibatches: int = ranged(2, 1)
    num_iterations: int = ranged(1, 1)
    micro_batch: int = ranged(0, 0)
    max_grad_norm: float = ranged(1.0, 0.0)
    utility: Mapping[str, float] = ranged({str(k): v for k, v in DEFAULT_UTILITY.items()}, 0.0, 10.0)
    alpha: float = ranged(1.0, 0.0)
    ema: float = ranged(0.25, 0.0, 1.0)
    clip: tuple[float, float] = ranged((0.5, 2.0), 0.0)
    zero_variance: Literal["mask", "keep"] = "mask"


@dataclass(frozen=True, slots=True)
class Start:
    """Where a line of rounds starts: an environment and a policy (`kind` and what that kind takes), evaluated once."""

    env: str
    policy: Mapping[str, Any]
    recipe: int = ranged(RECIPE, 1)
    evaluate: EvaluateParams = field(default_factory=EvaluateParams)


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a new round takes where nothing else is said."""

    collect: CollectParams = field(default_factory=CollectParams)
    diagnose: DiagnoseParams = field(default_factory=DiagnoseParams)
    evolve: EvolveParams = field(default_factory=EvolveParams)
    train: TrainParams = field(default_factory=TrainParams)
    evaluate: EvaluateParams = field(default_factory=EvaluateParams)


@dataclass(frozen=True, slots=True)
class Round:
    """One resolved round."""

    parent: str
    env: str
    collect: CollectParams
    diagnose: DiagnoseParams
    evolve: EvolveParams
    train: TrainParams
    evaluate: EvaluateParams
    recipe: int = ranged(RECIPE, 1)


@dataclass(frozen=True, slots=True)
class Params:
    """The whole of params.yaml; rounds are in the order of the file."""

    run: RunParams
    flow: FlowParams
    envs: Mapping[str, Any]
    starts: Mapping[str, Start]
    defaults: Defaults
    rounds: Mapping[str, Round]


def parse_params(data: Any) -> Params:
    """Typed parameters of a loaded params.yaml. Raises ParamError for the first thing that is wrong."""
    if not isinstance(data, Mapping):
        raise ParamError("params.yaml", type(data).__name__, "write a mapping with run, envs, starts, defaults, rounds")
    check_keys(data, ["run", "flow", "envs", "starts", "defaults", "rounds"], "")
    envs, starts, rounds = (_mapping(data, key) for key in ("envs", "starts", "rounds"))
    check_keys(envs, list(ENVS), "envs")
    params = Params(
        run=read(RunParams, data.get("run") or {}, "run"),
        flow=read(FlowParams, data.get("flow") or {}, "flow"),
        envs={name: read(ENVS[name], entry or {}, f"envs.{name}") for name, entry in envs.items()},
        starts={name: read(Start, entry, f"starts.{name}") for name, entry in starts.items()},
        defaults=read(Defaults, data.get("defaults") or {}, "defaults"),
        rounds={name: read(Round, entry, f"rounds.{name}", complete=True) for name, entry in rounds.items()},
    )
    _check(params)
    return params


def load_params(path: Path) -> Params:
    """Read and check a params.yaml (YAML 1.2: `1e-4` is a number). Raises ParamError."""
    return parse_params(load_yaml(path))


def load_yaml(path: Path) -> Any:
    """The plain content of a YAML file. Raises ParamError when there is none or it does not parse."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).load(path.read_text())
    except OSError:
        raise ParamError("parameters", path, "run inside a SEAL workspace (a folder with params.yaml)") from None
    except YAMLError as error:
        raise ParamError("parameters", f"{path}: {error}", "mend the YAML") from None


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key) or {}
    if not isinstance(value, Mapping):
        raise ParamError(key, value, "write a mapping of names to entries")
    return value


def _check(params: Params) -> None:
    """What single fields cannot say: ids, lineage, and fields that must fit each other."""
    for section in ("starts", "rounds"):
        for name in getattr(params, section):
            if not isinstance(name, str) or not ROUND_ID.fullmatch(name):
                raise ParamError(f"{section}.{name}", name, "name it by a letter, then letters, digits, _ or - (small)")
    for name, entry in params.starts.items():
        _check_entry(params, f"starts.{name}", entry)
    for name, entry in params.rounds.items():
        path = f"rounds.{name}"
        if name in params.starts:
            raise ParamError(path, name, "a start has this name: take another")
        if entry.parent not in params.rounds and entry.parent not in params.starts:
            known = ", ".join((*params.starts, *params.rounds))
            raise ParamError(f"{path}.parent", entry.parent, f"unknown round; known: {known}")
        _check_entry(params, path, entry)
        if entry.collect.evolved > entry.collect.group_size:
            raise ParamError(f"{path}.collect.evolved", entry.collect.evolved, "at most collect.group_size")
        _check_labels(path, entry)
    for name in params.rounds:
        seen, current = [name], name
        while (current := params.rounds[current].parent) in params.rounds:
            if current in seen:
                raise ParamError(f"rounds.{name}.parent", " -> ".join((*seen, current)), "break the cycle of parents")
            seen.append(current)
        if params.starts[current].env != params.rounds[name].env:
            raise ParamError(f"rounds.{name}.env", params.rounds[name].env, f"its start {current} has another")


def _check_entry(params: Params, path: str, entry: Start | Round) -> None:
    if entry.env not in params.envs:
        raise ParamError(f"{path}.env", entry.env, f"declare it under envs; there: {', '.join(params.envs) or 'none'}")
    if entry.recipe > RECIPE:
        raise ParamError(f"{path}.recipe", entry.recipe, f"this version knows recipes up to {RECIPE}: update it")


def _check_labels(path: str, entry: Round) -> None:
    failures = [str(label) for label in DEFAULT_PRIORITY]
    if len(set(entry.diagnose.priority)) < len(entry.diagnose.priority) or not set(entry.diagnose.priority) <= FAILURES:
        raise ParamError(f"{path}.diagnose.priority", list(entry.diagnose.priority), f"an order of: {', '.join(failures)}")
    for label in entry.train.utility:
        if label not in set(Label):
            raise ParamError(f"{path}.train.utility.{label}", label, f"use labels: {', '.join(Label)}")
    if entry.train.clip[0] > entry.train.clip[1]:
        raise ParamError(f"{path}.train.clip", list(entry.train.clip), "write [low, high] with low <= high")
