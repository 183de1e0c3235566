"""Every way the pipeline says no: the thing, the value, the remedy.

A fault of the *policy* is never one of these: a bad rollout is a row with a stop reason. These are faults of a
configuration, a file or a contract, and each ends the process with the exit code of its class.
"""


class SealError(Exception):
    """Base of all errors a user can mend. `exit_code` is what the command line returns."""

    exit_code = 1

    def __init__(self, thing: str, value: object, remedy: str):
        self.thing, self.value, self.remedy = thing, value, remedy
        super().__init__(f"{thing}: {value}\n  -> {remedy}")


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
