"""Throw-away workspaces for tests: the real dvc.yaml, over stages that only copy what they read."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Stands in for every stage: writes each of its outputs as a digest of its parameters and of all it reads.
PLAIN_STAGE = """
import hashlib, json, os, sys, time
from pathlib import Path
from ruamel.yaml import YAML
from seal.core.errors import ContractError
from seal.workspace.dvc import write_error

stage, key = Path(sys.argv[0]).stem, sys.argv[1]
load = YAML(typ="safe").load
params = load(Path("params.yaml"))
entry = (params["rounds"] or {}).get(key) or params["starts"].get(key) or {}
spec = load(Path("dvc.yaml"))["stages"][stage]["do"]
values = {"${key}": key, "${item.parent}": entry.get("parent", ""), "${item.env}": "shop"}


def fill(text):
    for name, value in values.items():
        text = text.replace(name, value)
    return text


section = {"evolve_interface": "evolve", "start": "policy", "evaluate_start": "evaluate"}.get(stage, stage)
mood = entry.get("collect", {}).get("tasks", 0)
if stage == "train" and mood == 666:
    if not write_error(ContractError("table steps", "7 rows", "mend them")):
        print("error: told", file=sys.stderr)
    sys.exit(4)
if stage == "train" and mood == 667:
    raise RuntimeError("boom")
if stage == "train" and mood == 668:
    Path("pid").write_text(str(os.getpid()))
    time.sleep(60)
decides = json.dumps([stage, entry.get(section), params["run"]["seed"]], sort_keys=True)
digest = hashlib.blake2b(decides.encode(), digest_size=8)
for dep in map(fill, spec.get("deps", [])):
    files = sorted(p for p in Path(dep).rglob("*") if p.is_file()) if Path(dep).is_dir() else [Path(dep)]
    for file in files:
        digest.update(file.read_bytes())
if stage == "train" and entry["train"]["reference"] == "start":  # as stages/train.py: no dependency
    start = key
    while start in (params["rounds"] or {}):
        start = params["rounds"][start]["parent"]
    digest.update(Path(f"data/rounds/{start}/policy/part.txt").read_bytes())
text = digest.hexdigest() + (os.urandom(4).hex() if stage == "evaluate" and mood == 669 else "")
for out in map(fill, spec["outs"]):
    out = Path(out)
    if out.suffix:
        out.parent.mkdir(parents=True, exist_ok=True)
        words = dict.fromkeys(("label", "born_in"), "") | {"kind": "purpose", "target": "tool", "where": "docs"}
        out.write_text(json.dumps({"version": 1, "items": [{**words, "text": text, "status": "retired"}]}))
    else:
        out.mkdir(parents=True, exist_ok=True)
        for name in ("part.txt", "profile.parquet", "reweight.json", "replay.parquet"):
            (out / name).write_text(text)
if "metrics" in spec:
    mean = {"mean": 0.1, "low": 0.0, "high": 0.2}
    found = {"round": key, "depth": 1, "strict": mean, "dev": mean, "labels": {}, "digest": text}
    Path(f"data/rounds/{key}/metrics.json").write_text(json.dumps(found, sort_keys=True))
with Path("ran.log").open("a") as log:
    log.write(f"{stage}@{key}\\n")
"""


def command(folder: Path, *words: str, check: bool = True, **more) -> subprocess.CompletedProcess:
    """Run a program in the workspace with the interpreter of the tests first on PATH."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "DVC_NO_ANALYTICS": "1", "PYTHONHASHSEED": "0"}
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False, **more)
    if check and done.returncode:
        raise AssertionError(f"{' '.join(words)}: rc {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done


def seal(folder: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess:
    return command(folder, sys.executable, "-m", "seal.cli", *words, check=check)


def dvc(folder: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess:
    return command(folder, sys.executable, "-m", "dvc", *words, check=check)


def commit(folder: Path) -> None:
    """Commit everything git does not ignore."""
    command(folder, "git", "add", "-A")
    command(folder, "git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "state")


def workspace(folder: Path, params: str, plain: bool) -> Path:
    """A git and DVC workspace with this params.yaml; `plain`: with stand-ins for the stages."""
    shutil.copytree(ROOT / ".dvc", folder / ".dvc", ignore=shutil.ignore_patterns("tmp", "cache", "*.local"))
    for name in (".gitignore", ".dvcignore", "dvc.yaml", "prefect.toml", "prefect.yaml"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "flows", folder / "flows", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "params.yaml").write_text(params)
    if plain:
        (folder / "stages").mkdir()
        names = [path.stem for path in (ROOT / "stages").glob("[a-z]*.py")]
        for name in names:
            (folder / "stages" / f"{name}.py").write_text(PLAIN_STAGE)
    else:
        shutil.copytree(ROOT / "stages", folder / "stages", ignore=shutil.ignore_patterns("__pycache__"))
    with (folder / ".gitignore").open("a") as ignore:
        ignore.write("ran.log\npid\n")
    command(folder, "git", "init", "-q")
    commit(folder)
    return folder


def ran(folder: Path) -> list[str]:
    """What stand-in stages have run since the last call, in order."""
    log = folder / "ran.log"
    lines = log.read_text().split() if log.exists() else []
    log.unlink(missing_ok=True)
    return lines
