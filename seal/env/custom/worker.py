"""Python tools in a process of their own, so that nothing a tool does ends or stops ours.

A tool that exits, crashes, waits for ever or goes on when it is told to stop is an error result of that call: its
process is ended. The worlds in it (they share nothing, see functions.py) are made anew by the calls they had.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from seal.core.errors import ParamError, SealError
from seal.core.types import Call, Json, Result, ToolDoc
from seal.env.base import Session
from seal.env.custom.functions import PythonTools, result_of
from seal.env.custom.source import SECONDS, Source

WAIT = 30.0  # seconds at least, for an answer
_NUMBERS = itertools.count()  # of worlds


class Ended(Exception):
    """The process is no more. `late`: because its time was over."""

    def __init__(self, late: bool):
        super().__init__("ran on after its time" if late else "ended its process")
        self.late = late


class WorkerTools:
    """The tools of a Python module, as PythonTools. Raises ParamError for whatever cannot be used.

    A call may take `seconds` of computing: twice that ends the process, and so does waiting for ten times as long.
    """

    def __init__(self, path: str, seconds: float, root: Path):
        source = Source(path.partition(":")[0], root)
        self.folder, self.digest, self.function = source.folder, source.digest, source.function
        self._path, self.seconds, self._root = path, seconds, root
        self._pid, self._process, self._pipe = 0, None, None
        self._lock, self._gone = threading.RLock(), []
        self.docs: tuple[ToolDoc, ...] = self.ask(SECONDS, "docs")

    def open(self, state: Mapping[str, Json]) -> "WorkerSession":
        """A fresh world. Raises ParamError for a state it does not take."""
        return WorkerSession(self, state)

    def ask(self, seconds: float, what: str, *about: Any) -> Any:
        """What the process answers. Raises the ParamError it tells, and for its end."""
        try:
            return self._asked(seconds, what, *about)
        except Ended as error:
            value, remedy = f"{self._path}: it {error} ({what})", "it must load, open and tell its state without that"
            raise ParamError("module", value, remedy) from None

    def ask_world(self, world: "WorkerSession", seconds: float, what: str, *about: Any) -> Any:
        """The same of one world. Raises Ended."""
        with self._lock:
            self.reach(world)
            return self._asked(seconds, what, world.number, *about)

    def reach(self, world: "WorkerSession") -> None:
        """Make a world that is not there, or whose process has ended."""
        with self._lock:
            if world.process is not self._started():
                world.process = self._started()
                limit = SECONDS + self.seconds * len(world.calls)
                self.ask(limit, "open", world.number, world.start, world.calls)

    def forget(self, number: int) -> None:
        """A world that nobody has any more: told with the next question (this may run in the middle of one)."""
        self._gone.append(number)

    def _asked(self, seconds: float, *question: Any) -> Any:
        with self._lock:
            self._started()
            gone, self._gone = self._gone, []
            late = False
            try:
                self._pipe.send((gone, seconds, *question))
                if late := not self._pipe.poll(max(WAIT, 10 * seconds)):
                    raise EOFError
                is_well, answer = self._pipe.recv()
            except (EOFError, OSError):
                process, self._process = self._process, None
                process.kill()
                raise Ended(late or process.wait() == -signal.SIGPROF) from None
            except BaseException:  # interrupted: the answer to come is to no question
                self._process.kill()
                self._process = None
                raise
        if is_well:
            return answer
        raise answer

    def _started(self) -> subprocess.Popen:
        """The process, started where there is none of ours: a fork does not share its parent's."""
        if self._process is None or self._pid != os.getpid():
            self._pipe, theirs = Pipe()
            told = (str(theirs.fileno()), self._path, str(self.seconds), str(self._root))
            paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", f"from {__name__} import main; main()", *told], env=os.environ | paths,
                    pass_fds=(theirs.fileno(),), stdin=subprocess.PIPE, stdout=2,
                )  # fmt: skip
            self._pid = os.getpid()
            weakref.finalize(self, self._process.kill)
        return self._process


class WorkerSession(Session):
    """One world in the process: its number there, its first state, and the calls it had."""

    def __init__(self, tools: WorkerTools, start: Mapping[str, Json]):
        self.number, self.start, self.calls, self.process = next(_NUMBERS), dict(start), [], None
        self._tools = tools
        weakref.finalize(self, tools.forget, self.number).atexit = False
        tools.reach(self)

    def call(self, call: Call) -> Result:
        """Run one call. What one did that ran too long, or ended its process, is undone: so it is whenever it ends."""
        seconds = self._tools.seconds
        late = result_of(f"error: {call.name} ran for more than {seconds:g} seconds", "timeout")
        try:
            result = self._tools.ask_world(self, seconds, "call", call)
        except Ended as error:
            return late if error.late else result_of(f"error: {call.name} ended its process", "other")
        except RecursionError:  # arguments that cannot even be sent
            return result_of("error: maximum recursion depth exceeded", "other")
        if result == late:
            self.process = None
        else:
            self.calls.append(call)
        return result

    def state(self) -> dict[str, Json]:
        try:
            return json.loads(self._tools.ask_world(self, SECONDS, "state"))
        except Ended as error:
            raise ParamError("state", f"state(): it {error}", "it must return a dict, at once") from None


def serve(pipe: Connection, path: str, seconds: float, root: Path) -> None:
    """Answer questions until nobody asks any more."""
    tools, worlds = None, {}
    while True:
        try:
            gone, limit, what, *about = pipe.recv()
        except EOFError:
            return
        for number in gone:
            worlds.pop(number, None)
        signal.setitimer(signal.ITIMER_PROF, 2 * limit + 1)  # whose signal ends us, whatever the tool catches
        try:
            if what == "docs":
                tools = PythonTools(path, seconds, root)
                answer = tools.docs
            elif what == "open":
                number, state, calls = about
                tools = tools or PythonTools(path, seconds, root)
                worlds[number] = tools.open(state)
                answer = [worlds[number].call(call) for call in calls] and None
            elif what == "call":
                answer = worlds[about[0]].call(about[1])
            else:
                answer = json.dumps(worlds[about[0]].state())
            is_well = True
        except SealError as error:
            is_well, answer = False, error
        except BaseException as error:  # nobody interrupts us: the user's module raised it
            fault = f"{path}: {type(error).__name__}: {error}"
            is_well, answer = False, ParamError("module", fault, "it must load without an error")
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.send((is_well, answer))


def _end_with(stream: int) -> None:
    """Whoever holds the other end of our standard input has ended, maybe while a tool runs."""
    os.read(stream, 1)
    os._exit(0)


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    number, path, seconds, root = sys.argv[1:]
    stream = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # which tools may read
    threading.Thread(target=_end_with, args=(stream,), daemon=True).start()
    serve(Connection(int(number)), path, float(seconds), Path(root))
