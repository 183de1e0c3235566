"""params.yaml as typed, range-checked, immutable values.

An entry of `rounds` or `starts` is *resolved*: every key is written out when it is added, so that changing `defaults`,
or those of the library, never changes a round that exists.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from seal.core.errors import ParamError
from seal.core.labels import DEFAULT_PRIORITY, FAILURES, Label
from seal.settings.envs import ENVS
from seal.settings.evolve import DiagnoseParams, EvolveParams, GateParams  # noqa: F401  offered from here as well
from seal.settings.play import CollectParams, EvaluateParams  # noqa: F401
from seal.settings.policies import POLICIES, UNTRAINED
from seal.settings.rounds import RECIPE, Defaults, FlowParams, Round, RunParams, Start
from seal.settings.train import TrainParams
from seal.settings.typed import check_keys, read

ROUND_ID = re.compile(r"[a-z][a-z0-9_-]{0,63}")  # names a folder and stages


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
    names = ["run", "flow", "envs", "starts", "defaults", "rounds"]
    check_keys(data, names, "")
    # A name with nothing behind it has no entries; no other emptiness (`[]`, false) means that.
    sections = {name: {} if data.get(name) is None else data[name] for name in names}
    for name in ("envs", "starts", "rounds"):
        if not isinstance(sections[name], Mapping):
            raise ParamError(name, sections[name], "write a mapping of names to entries, or nothing")
    check_keys(sections["envs"], list(ENVS), "envs")
    params = Params(
        run=read(RunParams, sections["run"], "run"),
        flow=read(FlowParams, sections["flow"], "flow"),
        envs={k: read(ENVS[k], {} if entry is None else entry, f"envs.{k}") for k, entry in sections["envs"].items()},
        starts={k: read(Start, entry, f"starts.{k}", complete=True) for k, entry in sections["starts"].items()},
        defaults=read(Defaults, sections["defaults"], "defaults"),
        rounds={k: read(Round, entry, f"rounds.{k}", complete=True) for k, entry in sections["rounds"].items()},
    )
    _check(params)
    return params


def load_params(path: Path) -> Params:
    """Read and check a params.yaml (YAML 1.2: `1e-4` is a number). Raises ParamError."""
    return parse_params(load_yaml(path))


def load_yaml(path: Path, thing: str = "parameters") -> Any:
    """The plain content of a YAML file, which is `thing`. Raises ParamError when there is none or it does not parse."""
    try:
        return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParamError(thing, path, "run inside a SEAL workspace (a folder with params.yaml)") from None
    except OSError as error:
        raise ParamError(thing, f"{path}: {error.strerror}", "name a YAML file that can be read") from None
    except (YAMLError, ValueError, RecursionError) as error:
        mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
        line = f"line {mark.line + 1}: " if mark else ""
        raise ParamError(thing, f"{path}: {line}{yaml_fault(error)}", "mend the YAML") from None


def yaml_fault(error: Exception) -> str:
    """What is wrong with a YAML text, without the text around it and the advice of ruamel."""
    problem = error.problem if isinstance(error, MarkedYAMLError) else None
    return (problem or str(error)).partition("\n")[0]


def _check(params: Params) -> None:
    """What single fields cannot say: ids, lineage, and fields that must fit each other."""
    for section, names in (("starts", params.starts), ("rounds", params.rounds)):
        for name in names:
            if not isinstance(name, str) or not ROUND_ID.fullmatch(name):
                remedy = "name it by a letter, then letters, digits, _ or - (small), 64 at most"
                raise ParamError(f"{section}.{name}", "empty" if name == "" else name, remedy)
    for name, entry in params.starts.items():
        _check_entry(params, f"starts.{name}", entry)
        kind = entry.policy.get("kind")
        if not isinstance(kind, str) or kind not in POLICIES:
            raise ParamError(f"starts.{name}.policy.kind", kind, f"use one of: {', '.join(POLICIES)}")
        read(POLICIES[kind], entry.policy, f"starts.{name}.policy")
    for name, entry in params.rounds.items():
        path = f"rounds.{name}"
        if name in params.starts:
            raise ParamError(path, name, "a start has this name: take another")
        if entry.parent not in params.rounds and entry.parent not in params.starts:
            known = ", ".join((*params.starts, *params.rounds))
            raise ParamError(f"{path}.parent", entry.parent, f"unknown round; known: {known}")
        _check_entry(params, path, entry)
        check_round(path, entry)
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


def check_trains(path: str, policy: Mapping[str, Any], train: TrainParams) -> None:
    """Raise ParamError for an update of a policy (the start's, as an entry) that has no weights to train."""
    if train.algorithm == "none" or not train.steps:
        return
    if policy["kind"] in UNTRAINED or policy.get("train") == "none":
        remedy = f"use none: the start's policy ({policy['kind']}) has no weights that are trained"
        raise ParamError(f"{path}.train.algorithm", train.algorithm, remedy)


def check_round(path: str, entry: Round) -> None:
    """Raise ParamError for fields of a round that do not fit each other."""
    if entry.collect.evolved > entry.collect.group_size:
        raise ParamError(f"{path}.collect.evolved", entry.collect.evolved, "at most collect.group_size")
    for phase, played in (("collect", entry.collect), ("evaluate", entry.evaluate)):
        if played.context <= played.max_action_tokens:
            remedy = f"more than max_action_tokens ({played.max_action_tokens}): an output and what it answers"
            raise ParamError(f"{path}.{phase}.context", played.context, remedy)
    rows = entry.collect.tasks * entry.collect.group_size
    if entry.train.minibatches > rows and entry.train.algorithm != "none":
        remedy = f"at most the rollouts of a step, collect.tasks times collect.group_size: {rows}"
        raise ParamError(f"{path}.train.minibatches", entry.train.minibatches, remedy)
    failures = [str(label) for label in DEFAULT_PRIORITY]
    order = entry.diagnose.priority
    if not isinstance(order, str) and (len(set(order)) < len(order) or not set(order) <= FAILURES):
        raise ParamError(f"{path}.diagnose.priority", list(order), f"an order of: {', '.join(failures)}")
    for label in entry.train.utility:
        if label not in set(Label):
            raise ParamError(f"{path}.train.utility.{label}", label, f"use labels: {', '.join(Label)}")
    if entry.train.clip[0] > entry.train.clip[1]:
        raise ParamError(f"{path}.train.clip", list(entry.train.clip), "write [low, high] with low <= high")
