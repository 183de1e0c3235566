"""A time limit on a piece of Python, in any thread."""

import ctypes
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class TimedOut(BaseException):
    """Raised inside what ran too long; no Exception, because the code of tools catches those."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimedOut in the body after `seconds` of computing, so that a busy machine changes no result.

    In the main thread by an alarm on the process's time, elsewhere by a second thread that watches this one's. One long
    operation inside C ends before either can interrupt it.
    """
    in_main = threading.current_thread() is threading.main_thread()
    with _alarm(seconds) if in_main else _watch(seconds):
        yield


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def stop(signum, frame):
        raise TimedOut

    before = signal.signal(signal.SIGVTALRM, stop)
    left, interval = signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, left, interval)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def _watch(seconds: float) -> Iterator[None]:
    thread = threading.get_ident()
    clock = time.pthread_getcpuclockid(thread)
    end, done, one = time.clock_gettime(clock) + seconds, threading.Event(), threading.Lock()

    def watch():
        while not done.wait(max(end - time.clock_gettime(clock), 0.01)):
            if time.clock_gettime(clock) >= end:
                with one:
                    if not done.is_set():
                        _raise_in(thread, ctypes.py_object(TimedOut))
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.set()
        with one:  # an exception that is on its way is for the body alone
            _raise_in(thread, ctypes.py_object())


def _raise_in(thread: int, exception: ctypes.py_object) -> None:
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), exception)
