"""Every way the pipeline says no: the thing, the value, the remedy.

A fault of the *policy* is never one of these: a bad rollout is a row with a stop reason. These are faults of a
configuration, a file or a contract, and each ends the process with the exit code of its class.
"""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

PLAY = "`seal run` plays the rounds, `dvc pull` fetches what was run elsewhere"  # the remedy where nothing was played
REMAKE = "restore it with `dvc checkout`, or run its stage"  # that of a file which a stage writes
MOST_SHOWN = 1000  # characters of a value in a message


class SealError(Exception):
    """Base of all errors a user can mend. `exit_code` is what the command line returns."""

    exit_code = 1

    def __init__(self, thing: str, value: object, remedy: str):
        self.thing, self.value, self.remedy = thing, value, remedy
        shown = str(value)
        if len(shown) > MOST_SHOWN:
            shown = f"{shown[:MOST_SHOWN]}... ({len(shown):,} characters)"
        super().__init__(f"{thing}: {shown}\n  -> {remedy}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors of worker processes come back as what they are."""
        return type(self), (self.thing, self.value, self.remedy)


class ParamError(SealError):
    """A parameter is unknown, of the wrong type or out of range."""

    exit_code = 2


class ArtifactError(SealError):
    """A file is missing, truncated, or not what its name says."""

    exit_code = 3


class ContractError(SealError):
    """A table breaks its schema or its Great Expectations suite."""

    exit_code = 4


class RoundError(SealError):
    """An unknown round, a broken lineage, or a replay that cannot be trusted."""

    exit_code = 5


class DependencyError(SealError):
    """An optional package, a weight file or a service is not there."""

    exit_code = 6


class MachineError(SealError):
    """The machine does not let us write (or read): a full disk, a quota, a read-only file system, missing rights."""

    exit_code = 7


REFUSALS = {  # errno -> remedy
    errno.ENOSPC: "free space there and run it again: what was done stays done",
    errno.EDQUOT: "free space within the quota there and run it again: what was done stays done",
    errno.EFBIG: "raise the limit on the size of files (ulimit -f)",
    errno.EROFS: "it is on a read-only file system: mount it writable, or work elsewhere",
    errno.EACCES: "give this user the right to it, or work elsewhere",
    errno.EPERM: "give this user the right to it, or work elsewhere",
    errno.ENOTDIR: "a file stands where a folder is wanted: name another place",
    errno.EEXIST: "something else stands there already: name another place",
    errno.EISDIR: "a folder stands where a file is wanted: name another place",
    errno.EBUSY: "it is in use: name another place",
    errno.ENAMETOOLONG: "give it a shorter name",
    errno.ELOOP: "links lead in a circle there: name another place",
}
# libraries that have no OSError of their own say it in words, some with the path
_IN_WORDS = re.compile(r"(?:\[Errno |\(os error )(\d+)[\])](?:[^:'\n]*: '([^'\n]+)')?")


@contextmanager
def mended_by(remedy: str) -> Iterator[None]:
    """Say `remedy` of a file that cannot be used: whoever reads a file knows better where it comes from."""
    try:
        yield
    except (ArtifactError, ContractError) as error:
        raise type(error)(error.thing, error.value, remedy) from None


def as_seal_error(error: Exception) -> SealError:
    """An error as one a user can mend: a SealError itself, or what the machine refused. Raises any other again."""
    if isinstance(error, SealError):
        return error
    cause = error.__context__ if type(error) is RuntimeError and error.__context__ else error  # torch's own word
    said = _IN_WORDS.search(str(cause))
    number, path = (cause.errno, cause.filename) if isinstance(cause, OSError) else (None, None)
    number = number or (int(said[1]) if said else 0)
    if number not in REFUSALS:
        raise error
    path = path or (said and said[2]) or "a file"
    return MachineError(str(path), os.strerror(number), REFUSALS[number])
