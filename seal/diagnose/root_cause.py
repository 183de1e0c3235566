"""Root or consequence: would this turn's own work have been right, had the turns before it been?

The run is aligned to the gold program from the last correct state. A failing turn is a consequence when its calls are
the gold calls, or pass on the gold state (after ids that only differ because of an earlier fault are translated), or
change the inherited state exactly as the gold turn changes the gold state. An independent second fault stays root.
A first failing turn whose own work is right has its root in an earlier turn that passed: a fault the verifier could
not see yet (a wrong directory, a missed login). It is found by replacing ever more of the prefix by gold.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from seal.core.types import Call, Json, Result, Task
from seal.diagnose.trace import Trace, delta, gold_traces, leaves, trace
from seal.diagnose.turn_evidence import key
from seal.env.base import Environment


class Alignment:
    """One failing rollout against the gold program; what it executes is executed once.

    `calls`: the policy's calls by user turn, `results`: their stored results.
    """

    def __init__(
        self, env: Environment, task: Task, calls: Sequence[Sequence[Call]], results: Sequence[Sequence[Result]]
    ):
        self._env, self._task, self._calls, self._results = env, task, calls, results
        self._own: dict[tuple[int, int], Trace] = {}

    def gold(self, turn: int) -> Trace:
        """The gold calls of a turn after the gold calls of all earlier turns."""
        return gold_traces(self._env, self._task)[turn]

    def own(self, turn: int, first: int | None = None) -> Trace:
        """The policy's calls of a turn after gold up to turn `first` (default: this turn), then its own calls."""
        first = turn if first is None else first
        if (turn, first) not in self._own:
            self._own[turn, first] = self._trace(turn, first)
        return self._own[turn, first]

    def _trace(self, turn: int, first: int) -> Trace:
        before = [*self._gold_calls(0, first), *(call for k in range(first, turn) for call in self._calls[k])]
        return trace(self._env, self._task, before, self._calls[turn])

    def judge(self, turn: int, own: Trace, first: int | None = None) -> tuple[bool, bool]:
        """(state_ok, response_ok) of a trace of `own` against the gold turn, as the verifier would see it."""
        shown = Counter(result.raw for result in own.results)
        for k in range(turn):
            theirs = Counter(result.raw for result in self._results[k])
            by_gold = k < (turn if first is None else first)
            shown += theirs | Counter(result.raw for result in self.gold(k).results) if by_gold else theirs
        wanted = Counter(result.raw for result in self.gold(turn).results)
        return own.after == self.gold(turn).after, not wanted - shown

    def work_is_right(self, turn: int) -> bool:
        """Whether the turn's own work is right, whatever state it inherited."""
        gold = self._task.turns[turn].gold
        if gold and not self._calls[turn]:
            return False
        if self._is_gold(turn) or all(self.judge(turn, self.own(turn))):
            return True
        translated = self._translated(turn)
        if translated is not None:
            there = trace(self._env, self._task, self._gold_calls(0, turn), translated)
            if all(self.judge(turn, there)):
                return True
        return self._changes_as_gold(turn)

    def latent_root(self, turn: int) -> int:
        """The last earlier turn whose own calls, put back into the gold program, make `turn` fail; -1: none does."""
        for first in range(turn - 1, -1, -1):
            if not all(self.judge(turn, self.own(turn, first), first)):
                return first
        return -1

    def _is_gold(self, turn: int) -> bool:
        return list(map(key, self._calls[turn])) == list(map(key, self._task.turns[turn].gold))

    def _changes_as_gold(self, turn: int) -> bool:
        """Same change of state, relative to what was inherited, and everything the gold turn is shown is shown."""
        gold, here = self.gold(turn), self.own(turn, 0)
        shown = Counter(result.raw for k in range(turn + 1) for result in self._results[k])
        wanted = Counter(result.raw for result in gold.results)
        change = delta(gold.before, gold.after)
        return not wanted - shown and delta(here.before, here.after) == change

    def _translated(self, turn: int) -> list[Call] | None:
        """The turn's calls with values that only the policy's run knows replaced by the gold run's; None: no such."""
        names = self._renamed(turn)
        if not names:
            return None
        calls = [Call(call.name, _replaced(dict(call.arguments), names)) for call in self._calls[turn]]
        return calls if calls != list(self._calls[turn]) else None

    def _renamed(self, turn: int) -> Mapping[str, Json]:
        """Policy value -> gold value, from earlier calls that both made and that shown each another value."""
        names: dict[str, Json] = {}
        for k in range(turn):
            theirs = list(zip(self._calls[k], self._results[k], strict=True))
            for gold, wanted in zip(self._task.turns[k].gold, self.gold(k).results, strict=True):
                for call, result in theirs:
                    if key(call) == key(gold) and not result.error_kind and result.raw != wanted.raw:
                        names |= _differences(result.raw, wanted.raw)
        return names

    def _gold_calls(self, start: int, stop: int) -> list[Call]:
        return [call for turn in self._task.turns[start:stop] for call in turn.gold]


def _differences(own: str, gold: str) -> dict[str, Json]:
    """Scalar -> scalar where two results of one call differ at the same place."""
    try:
        a, b = leaves(json.loads(own)), leaves(json.loads(gold))
    except ValueError:
        a, b = leaves(own.split()), leaves(gold.split())
    return {str(a[path]): b[path] for path in a if path in b and a[path] != b[path] and isinstance(a[path], str | int)}


def _replaced(value: Json, names: Mapping[str, Json]) -> Json:
    if isinstance(value, dict):
        return {key: _replaced(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_replaced(item, names) for item in value]
    if isinstance(value, bool) or not isinstance(value, str | int):
        return value
    there = names.get(str(value), value)
    if isinstance(value, str):
        return str(there)
    return there if isinstance(there, int) and not isinstance(there, bool) else value
