"""Running DVC as a child process: one at a time, killed as a whole, its error as ours.

DVC and the stage it runs are a process group of their own, because a killed DVC leaves its stage alive. The group ends
with us, also where `kill -9` lets us do nothing about it. A lock file makes callers wait for each other, because a
second `dvc repro` would give up at once.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from filelock import FileLock

from seal.core import errors

ERROR_FILE = "SEAL_ERROR_FILE"  # environment variable: where a stage writes its SealError for the process that runs DVC
_KINDS = (
    *(errors.ParamError, errors.ArtifactError, errors.ContractError),
    *(errors.RoundError, errors.DependencyError, errors.MachineError),
)
_ERRORS = {kind.__name__: kind for kind in _KINDS}
_PRINTED = re.compile(r"^error: (.+?): (.*)\n  -> (.*)$", re.MULTILINE)  # by a stage that could not write ERROR_FILE
QUIET = {
    "DVC_NO_ANALYTICS": "1",
    "GX_ANALYTICS_ENABLED": "false",
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
_GRACE = 5.0  # seconds between asking and killing
_WATCH = f'read -r _; kill -TERM "-$0" && sleep {_GRACE:g} && kill -KILL "-$0"'


class StageError(errors.SealError):
    """A stage failed with something that is not one of our errors: a fault of the code or of the machine."""


def environment(root: Path) -> dict[str, str]:
    """The variables DVC and the stages run with: this interpreter first on PATH, nothing that phones home."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    found = {**os.environ, **QUIET, "PATH": path, "PYTHONHASHSEED": "0"}
    if (root / "seal" / "cli.py").is_file():  # a checkout runs its own code, whatever is installed
        found["PYTHONPATH"] = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
    return found


def repro(root: Path, targets: Sequence[str], flags: Sequence[str] = (), timeout: float | None = None) -> bool:
    """`dvc repro -s` of `targets`, in this order; the stages' progress goes to our stderr. True when something ran.

    Raises the stage's own SealError, StageError for any other failure or after `timeout` seconds.
    """
    error_file = root / ".seal" / f"error-{os.getpid()}-{threading.get_ident()}.json"
    error_file.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "dvc", "repro", *flags, "-s", *targets]
    try:
        with _lock(root):
            code, output = _run(command, root, {ERROR_FILE: str(error_file)}, timeout)
        if code:
            raise _failure(targets, output, error_file)
    finally:
        error_file.unlink(missing_ok=True)
    return any(line.startswith("Running stage") for line in output)


def is_current(root: Path, targets: Sequence[str]) -> bool:
    """Whether DVC would run nothing: outputs, dependencies and parameters are those of dvc.lock."""
    with _lock(root):
        done = subprocess.run(
            [sys.executable, "-m", "dvc", "status", "-q", *targets],
            cwd=root, env=environment(root), stdin=subprocess.DEVNULL, capture_output=True, check=False,
        )  # fmt: skip
    return done.returncode == 0


def stop(process: subprocess.Popen) -> None:
    """End a process and everything it started: ask, wait, kill."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(_GRACE)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait()


@contextmanager
def tied(group: int) -> Iterator[None]:
    """Let a process group end when this process does, however it is ended: a shell of its own session waits for the end
    of a pipe that we alone hold open."""
    watch = subprocess.Popen(
        ["sh", "-c", _WATCH, str(group)], start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        watch.kill()
        watch.communicate()


@contextmanager
def _lock(root: Path) -> Iterator[None]:
    folder = root / ".dvc" / "tmp"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "seal.lock"):
        yield


def _run(command: list[str], root: Path, extra: dict[str, str], timeout: float | None) -> tuple[int, list[str]]:
    """Exit code and the last lines of both streams."""
    process = subprocess.Popen(
        command, cwd=root, env={**environment(root), **extra}, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    lines: deque[str] = deque(maxlen=2000)
    readers = [threading.Thread(target=_read, args=(pipe, lines, show), daemon=True)
               for pipe, show in ((process.stdout, False), (process.stderr, True))]  # fmt: skip
    try:
        for reader in readers:
            reader.start()
        with tied(process.pid):
            process.wait(timeout)
    except subprocess.TimeoutExpired:
        raise StageError(
            "time limit", f"{timeout:g} s for {command[-1]}", "raise the limit, or make the stage smaller"
        ) from None
    finally:
        if process.poll() is None or alive(process.pid):
            stop(process)
    for reader in readers:
        reader.join(_GRACE)
    return process.returncode, list(lines)


def alive(group: int) -> bool:
    """Whether a process group has a process."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _read(pipe: BinaryIO, lines: deque[str], show: bool) -> None:
    """Keep lines; pass progress on as it comes (bars end in carriage returns), but not what DVC says itself."""
    part = b""
    while chunk := os.read(pipe.fileno(), 4096):
        *whole, part = (part + chunk).replace(b"\r", b"\r\n").split(b"\n")
        for raw in whole:
            if show and not raw.startswith((b"ERROR: ", b"WARNING: ")):
                sys.stderr.buffer.write(raw if raw.endswith(b"\r") else raw + b"\n")
                sys.stderr.flush()
            lines.append(raw.decode(errors="replace").rstrip("\r"))
    if part:
        lines.append(part.decode(errors="replace"))


def _failure(targets: Sequence[str], output: list[str], error_file: Path) -> errors.SealError:
    try:
        said = json.loads(error_file.read_text())
        return _ERRORS.get(said["kind"], StageError)(said["thing"], said["value"], said["remedy"])
    except (OSError, ValueError, KeyError):
        pass
    name = ", ".join(targets)
    tail = "\n".join(line for line in output if line.strip()).strip()[-2000:]
    failures = [line for line in output if line.startswith("ERROR: ")]
    if found := _PRINTED.search("\n".join(output)):
        return errors.MachineError(*found.groups())
    with suppress(RuntimeError):
        return errors.as_seal_error(RuntimeError("\n".join(failures)))
    if any(words in line for line in failures for words in ("missing data 'source'", "does not exist", "No such file")):
        return errors.ArtifactError(f"stage {name}", tail, "run the stages before it, or `dvc checkout`")
    if "Stage" in tail and "not found" in tail:
        return errors.RoundError(f"stage {name}", tail, "see `seal round list`")
    return StageError(f"stage {name}", tail or "failed without a word", f"run it alone: dvc repro -s {targets[0]}")


def write_error(error: errors.SealError) -> bool:
    """For stages: hand the error to the process that runs DVC. False when there is none (then print it)."""
    if not (path := os.environ.get(ERROR_FILE)):
        return False
    said = {"kind": type(error).__name__, "thing": error.thing, "value": str(error.value), "remedy": error.remedy}
    try:
        Path(path).write_text(json.dumps(said))
    except OSError:  # the disk is full
        return False
    return True
