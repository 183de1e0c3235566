"""Adding rounds, starts and environments to params.yaml, with its comments and everything else left as they are."""

import fcntl
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from seal.core.errors import ParamError, RoundError
from seal.settings.params import Params, load_params, load_yaml, parse_params, yaml_fault
from seal.settings.rounds import RECIPE, Defaults, Round
from seal.settings.typed import check_keys, plain, read
from seal.store.files import atomic_file
from seal.workspace.lineage import Lineage

FIXED = ("parent", "env", "recipe")  # of a round: what the lineage says


def parse_settings(settings: Iterable[str], option: str = "--set") -> dict[str, Any]:
    """`train.lr=1e-4` strings as nested mappings; values are YAML 1.2. Raises ParamError for what is no `key=value`."""
    found: dict[str, Any] = {}
    for setting in settings:
        key, separator, text = setting.partition("=")
        if not separator or not key.strip():
            raise ParamError(option, setting, "write key=value, as in train.lr=1e-4 or told=0.5")
        *parents, last = key.strip().split(".")
        if option == "--set" and (parents or [last])[0] in FIXED:
            raise ParamError(option, setting, "parent, env and recipe come from the lineage: they are not set")
        place = found
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise ParamError(option, setting, f"{parent} was set to a value before")
        try:
            place[last] = YAML(typ="safe", pure=True).load(text)
        except (YAMLError, ValueError, RecursionError) as error:
            raise ParamError(option, setting, f"write the value as YAML does: {yaml_fault(error)}") from None
    return found


@contextmanager
def as_typed(option: str, settings: Sequence[str], entry: str) -> Iterator[None]:
    """Name what is wrong in an `entry` (such as rounds.r4) by the setting that was typed for it, else by its key."""
    try:
        yield
    except ParamError as error:
        if not error.thing.startswith(f"{entry}."):
            raise
        key = error.thing.removeprefix(f"{entry}.").partition("[")[0]
        for setting in reversed(settings):  # the last one holds
            typed = setting.partition("=")[0].strip()
            if f"{key}.".startswith(f"{typed}.") or typed.startswith(f"{key}."):
                remedy = error.remedy if typed == key else f"{key}: {error.remedy}"
                raise ParamError(option, setting, remedy) from None
        raise ParamError(key, error.value, error.remedy) from None


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `change` laid over it, mapping by mapping."""
    out = dict(base)
    for key, value in change.items():
        inner = out.get(key)
        out[key] = merged(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return out


def resolve(
    params: Params, parent: str, change: Mapping[str, Any], base: Round | None = None, name: str = "new"
) -> dict[str, Any]:
    """A complete round entry: `base` (default: the defaults) under `change`, as plain values."""
    env = Lineage(params).entry(parent).env
    like = base or params.defaults
    sections = {name: plain(part) for name, part in like if name in Defaults.model_fields}
    entry = merged({"parent": parent, "env": env, "recipe": RECIPE, **sections}, change)
    found = plain(read(Round, entry, f"rounds.{name}"))
    return {key: found[key] for key in entry}


def next_id(params: Params, parent: str) -> str:
    """r4 after r3; the first free number otherwise."""
    stem = parent.rstrip("0123456789") or "r"
    taken = {*params.starts, *params.rounds}
    return next(name for n in range(1, len(taken) + 2) if (name := f"{stem}{n}") not in taken)


def add_round(path: Path, round_id: str, entry: Mapping[str, Any]) -> None:
    """Write one resolved round. Raises RoundError when the id is taken, ParamError when the result is not valid."""
    with _locked(path):
        if round_id in (load_yaml(path).get("rounds") or {}):
            raise RoundError("round", round_id, "it exists, and a round is never changed: take another id")
        add_entries(path, {"rounds": {round_id: entry}})


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """What another process would add between our reading and our writing would be lost: it waits."""
    folder = os.open(path.parent, os.O_RDONLY)  # locked itself: nothing is left behind
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _first_difference(entry: Any, change: Any) -> str:
    """The first key of `change` (a.b.c) that `entry` says otherwise; "" where it says the same."""
    if not isinstance(change, Mapping):
        return ""
    for key, value in change.items():
        there = entry.get(key) if isinstance(entry, Mapping) else None
        if isinstance(value, Mapping) and isinstance(there, Mapping):
            if found := _first_difference(there, value):
                return f"{key}.{found}"
        elif there != value:
            return str(key)
    return ""


def read_preset(root: Path, name: str) -> dict[str, Any]:
    """A preset as it is written: of a name in presets/, or a file. Raises ParamError."""
    known = {path.stem: path for path in sorted((root / "presets").glob("*.yaml"))}
    is_path = name.endswith((".yaml", ".yml"))
    if is_path and Path(name).is_file():
        known[name] = Path(name)
    if name not in known:
        lacking = "there is no such file; " * is_path
        raise ParamError("--preset", name, f"{lacking}known presets: {', '.join(known) or 'none (no presets/ here)'}")
    return load_yaml(known[name])


def check_run(path: Path) -> None:
    """Raise ParamError for a file without what dvc.yaml names as parameters of its stages, before any is run."""
    data = load_yaml(path)
    said = data.get("run") if isinstance(data, Mapping) else None
    if said is None or (isinstance(said, Mapping) and "seed" not in said):
        raise ParamError("run.seed", "missing", "add `run: {seed: 0, threads: 1}` to params.yaml")


def add_preset(path: Path, preset: Mapping[str, Any]) -> list[str]:
    """Add what a preset has and the file lacks; its rounds get resolved. Returns the ids of the preset's rounds.

    A preset holds envs, starts, `defaults` of its own, and rounds {id: {parent, ...what differs}}. Raises ParamError
    when the file has a round, an environment or a start of that name which says otherwise.
    """
    with _locked(path):
        data = load_yaml(path)
        new, base = _preset_over(data, preset)
        rounds: dict[str, Any] = {}
        for name, change in (preset.get("rounds") or {}).items():
            if name not in (data.get("rounds") or {}):
                params = parse_params(merged(base, {"rounds": merged(data.get("rounds") or {}, rounds)}))
                rounds[name] = resolve(params, change["parent"], change, name=name)
        add_entries(path, {**new, "rounds": rounds})
    return list(preset.get("rounds") or {})


def params_with_preset(path: Path, preset: Mapping[str, Any]) -> tuple[Params, str]:
    """What the file would say with a preset's envs, starts and defaults; the preset's first start. Writes nothing."""
    _, whole = _preset_over(load_yaml(path), preset)
    return parse_params(whole), next(iter(preset.get("starts") or {}), "")


def _preset_over(data: Mapping[str, Any], preset: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The envs and starts that a preset adds to params, and the params with these and its defaults laid over them."""
    there = parse_params(data).defaults
    if not isinstance(preset, Mapping):
        raise ParamError("preset", type(preset).__name__, "write a mapping with envs, starts and rounds")
    check_keys(preset, ["envs", "starts", "defaults", "rounds"], "preset")
    for name, section in preset.items():
        if section is not None and not isinstance(section, Mapping):
            raise ParamError(f"preset {name}", section, "write a mapping of names to entries")
    for section in ("envs", "starts", "rounds"):
        for name, change in (preset.get(section) or {}).items():
            is_entry = isinstance(change or {}, Mapping)
            if not is_entry or (section == "rounds" and not isinstance((change or {}).get("parent"), str)):
                remedy = "write a mapping" + ", with its parent's id" * (section == "rounds")
                raise ParamError(f"preset {section}.{name}", change, remedy)
            if key := _first_difference((data.get(section) or {}).get(name, change), change):
                remedy = "make them equal, give the preset's one another name, or use another folder"
                raise ParamError(f"preset {section}.{name}", f"params.yaml has it with another `{key}`", remedy)
    new = {
        section: {k: v for k, v in (preset.get(section) or {}).items() if k not in (data.get(section) or {})}
        for section in ("envs", "starts")
    }
    defaults = merged(plain(there), preset.get("defaults") or {})
    common = {"recipe": RECIPE, "evaluate": defaults["evaluate"]}
    new["starts"] = {name: {**common, **(entry or {})} for name, entry in new["starts"].items()}
    return new, merged(data, {"defaults": defaults, **{key: merged(data.get(key) or {}, new[key]) for key in new}})


def add_entries(path: Path, sections: Mapping[str, Mapping[str, Any]]) -> None:
    """Add entries to sections of params.yaml, checked before anything is written, replaced in one go."""
    sections = {key: entries for key, entries in sections.items() if entries}
    if not sections:
        return
    yaml = YAML()
    yaml.width, yaml.preserve_quotes = 120, True
    yaml.indent(mapping=2, sequence=4, offset=2)
    document = yaml.load(path.read_text())
    for section, entries in sections.items():
        if not document.get(section):
            document[section] = CommentedMap()
        for name, entry in entries.items():
            document[section][name] = _in_our_style(entry)
    parse_params(document)
    text = io.StringIO()
    yaml.dump(document, text)
    with atomic_file(path) as partial:
        partial.write_text("".join(line.rstrip() + "\n" for line in text.getvalue().splitlines()))
    load_params(path)


def _in_our_style(entry: Any) -> Any:
    """An entry as a person would write it: one key a line, what is inside them in one line each."""

    def inline(value: Any) -> Any:
        if isinstance(value, Mapping):
            out = CommentedMap((key, inline(inner)) for key, inner in value.items())
        elif isinstance(value, list):
            out = CommentedSeq(map(inline, value))
        else:
            return value
        out.fa.set_flow_style()
        return out

    return CommentedMap((key, inline(value)) for key, value in entry.items()) if isinstance(entry, Mapping) else entry
