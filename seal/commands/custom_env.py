"""Environments for the single-shot verbs, the user's own tools among them: by a name of params.yaml as it stands there,
`custom:my_pkg.my_tools` as it is."""

from pathlib import Path

from seal.core.errors import ParamError, RoundError, SealError
from seal.core.types import Json
from seal.env import env_of, load_env
from seal.env.base import Environment, Session
from seal.workspace.lineage import Lineage, tasks_path

CHANGED = "its tools or tasks"


def env_named(name: str) -> Environment:
    """Any environment by its name: with its entry of params.yaml where the workspace has one, else with the defaults.
    Raises ParamError, RoundError for `custom` outside of a workspace."""
    from seal.settings.params import load_params
    from seal.workspace.lineage import find_root

    if ":" in name:
        return load_env(name)
    try:
        root = find_root()
    except RoundError:
        if name == "custom":
            raise
        return load_env(name)
    params = load_params(root / "params.yaml")
    if name in params.envs:
        return env_of(params, name)
    if name == "custom":
        remedy = "declare it in params.yaml, or write --env custom:my_pkg.my_tools"
        raise ParamError("envs.custom", "not there", remedy)
    return load_env(name)


def changed_tools(root: Path, lineage: Lineage) -> dict[str, str]:
    """{"custom": what changed} where the task table that `prepare@custom` wrote is another than it would write now, or
    {}. DVC knows no file of the user's tools and tasks.

    Files that no longer load have changed as well: the stage tells what is wrong with them. Nothing loads where there
    is no such environment.
    """
    path = tasks_path(root, "custom")
    if "custom" not in lineage.params.envs or not path.exists():
        return {}
    from seal.env.custom import workspace
    from seal.store.tables import tasks_of

    if root.resolve() != workspace().resolve():
        return {}
    try:
        now, before = env_of(lineage.params, "custom").tasks(), tasks_of(path)
    except SealError:
        return {"custom": CHANGED}
    same = sorted(now, key=lambda task: task.task_id) == sorted(before, key=lambda task: task.task_id)
    return {} if same else {"custom": CHANGED}


def session_named(name: str, state: Json) -> Session:
    """A fresh world of the user's tools from a state. Raises ParamError, also for an environment of another kind."""
    if name.partition(":")[0] != "custom":
        raise ParamError("--env", name, "bfcl, tau2, custom, or custom:my_pkg.my_tools")
    if not isinstance(state, dict):
        raise ParamError("state", type(state).__name__, "give an object: what the class or the module's variables take")
    return env_named(name).tools.open(state)
