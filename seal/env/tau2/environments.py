"""Fresh tau2 environments from databases that are parsed once: the package's own code runs on them, unchanged."""

import copy
import pickle
from collections.abc import Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

from seal.core.types import Json
from seal.env.tau2.package import module
from seal.env.tau2.records import as_json, changes, fields_of, opened

PARTS = ("tools", "user_tools")  # the agent's side and the user's


def new_environment(domain: str, initial: Mapping[str, Json] | None, solo: bool = False) -> Any:
    """A tau2 Environment in the start state of a task; `initial` is the task's initial_state. It shares nothing that a
    call can change with any other."""
    blank = _blank(domain, solo)
    if not initial:
        return _with(blank, *(opened(base) if base is not None else None for base in _bases(domain)))
    return _with(blank, *pickle.loads(_started(domain, as_json(initial), solo)))


def state_of(environment: Any) -> dict[str, str]:
    """`{part/table/key: JSON}` of all that differs from the domain's database: equal exactly where the official hashes
    of both sides, agent and user, are."""
    found, sides, domain = {}, _sides(environment), environment.domain_name
    for part, base, fields in zip(PARTS, _bases(domain), _fields(domain), strict=True):
        if base is not None:
            found |= {f"{part}/{place}": text for place, text in changes(sides[part].db, base, fields)}
    return found


def _sides(environment: Any) -> dict[str, Any]:
    """The toolkits of agent and user, None where that side has none."""
    return dict(zip(PARTS, (environment.tools, environment.user_tools), strict=True))


@cache
def tools_of(domain: str, side: str) -> Mapping[str, Any]:
    """`{name: tau2 Tool}` of `side`, one of PARTS; none where that side has no tools."""
    kit = _sides(_blank(domain, False))[side]
    return MappingProxyType({} if kit is None else kit.get_tools())


def policy_of(domain: str, solo: bool = False) -> str:
    """The domain's policy, as the official agents get it."""
    return _blank(domain, solo).policy


@cache
def _blank(domain: str, solo: bool) -> Any:
    """The stock environment with its own databases: never played, only copied."""
    return module(f"domains.{domain}.environment").get_environment(solo_mode=solo)


def _bases(domain: str) -> tuple[Any, Any]:
    """The parsed databases of agent and user; nothing changes them."""
    blank = _blank(domain, False)
    return blank.tools.db, blank.user_tools and blank.user_tools.db


@cache
def _pickled_bases(domain: str) -> bytes:
    """A copy of both comes several times as fast from here as from copy.deepcopy."""
    return pickle.dumps(_bases(domain), pickle.HIGHEST_PROTOCOL)


@cache
def _fields(domain: str) -> tuple[dict[str, str], ...]:
    return tuple({} if base is None else fields_of(base) for base in _bases(domain))


def _with(blank: Any, database: Any, user_database: Any) -> Any:
    environment = copy.copy(blank)
    environment.tools = type(blank.tools)(database)
    if user_database is not None:
        environment.user_tools = type(blank.user_tools)(user_database)
    environment.sync_tools()
    return environment


@lru_cache(maxsize=4096)
def _started(domain: str, initial: str, solo: bool) -> bytes:
    """Both databases after a task's initialisation, pickled."""
    start = module("data_model.tasks").InitialState.model_validate_json(initial)
    environment = _with(_blank(domain, solo), *pickle.loads(_pickled_bases(domain)))
    environment.set_state(start.initialization_data, start.initialization_actions, start.message_history or [])
    user = environment.user_tools
    return pickle.dumps((environment.tools.db, user and user.db), pickle.HIGHEST_PROTOCOL)
