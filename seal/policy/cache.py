"""Keys and values of a batch, written where the sampler says; and what an episode keeps of them between its steps."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from transformers.cache_utils import CacheLayerMixin

from seal.policy.base import Observation


@dataclass(slots=True)
class PrefixCache:
    """Ids that a model has read, and what it computed of them: keys and values a layer, (heads, ids, head size).

    It belongs to one model, whose weights do not change meanwhile.
    """

    ids: list[int] = field(default_factory=list)
    layers: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)

    def covers(self, context: Sequence[int]) -> int:
        """How many ids at the beginning of `context`, all but its last at most, are the ones kept here."""
        most = min(len(self.ids), len(context) - 1)
        if self.ids[:most] == list(context[:most]):
            return most
        return next(i for i in range(most) if self.ids[i] != context[i])


def prefix_caches(observations: Sequence[Observation], new_tokens: int, budget: int) -> list[PrefixCache | None]:
    """A place for each context and its output, in the observation's memory; None once they pass `budget` tokens."""
    caches: list[PrefixCache | None] = []
    total = 0
    for observation in observations:
        total += len(observation.ids) + new_tokens
        if total > budget:
            observation.memory.clear()
        caches.append(observation.memory.setdefault("prefix", PrefixCache()) if total <= budget else None)
    return caches


class Cursor:
    """Where the next keys and values go: a slice of rows, and the first column, or a column for each of them.

    `columns`: (rows, T), for rows that stand at different lengths; they may read the first `stop` columns.
    """

    def __init__(self) -> None:
        self.rows, self.start = slice(None), 0
        self.columns: torch.Tensor | None = None
        self.stop = 0


class Block(CacheLayerMixin):
    """Keys and values of one layer, (rows, heads, columns, head size), allocated once and written at the cursor."""

    is_sliding = False

    def __init__(self, cursor: Cursor, rows: int, columns: int):
        super().__init__()
        self.cursor, self.rows, self.columns = cursor, rows, columns

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.keys = key_states.new_zeros(self.rows, key_states.shape[1], self.columns, key_states.shape[3])
        self.values = value_states.new_zeros(self.rows, value_states.shape[1], self.columns, value_states.shape[3])
        self.is_initialized = True

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *_, **__):
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        rows, start, stop = self.cursor.rows, self.cursor.start, self.cursor.start + key_states.shape[2]
        if self.cursor.columns is None:
            self.keys[rows, :, start:stop], self.values[rows, :, start:stop] = key_states, value_states
            return (
                (key_states, value_states) if start == 0 else (self.keys[rows, :, :stop], self.values[rows, :, :stop])
            )
        place = torch.arange(len(key_states), device=key_states.device)[:, None], self.cursor.columns
        self.keys[rows].transpose(1, 2)[place] = key_states.transpose(1, 2)
        self.values[rows].transpose(1, 2)[place] = value_states.transpose(1, 2)
        return self.keys[rows, :, : self.cursor.stop], self.values[rows, :, : self.cursor.stop]

    def put(self, row: int, size: int, keys: torch.Tensor, values: torch.Tensor) -> None:
        """Write the first `size` ids of what was kept of a row, (heads, ids, head size), into its first columns."""
        if not self.is_initialized:
            self.lazy_initialization(keys[None], values[None])
        self.keys[row, :, :size], self.values[row, :, :size] = keys[:, :size], values[:, :size]

    def get(self, row: int, first: int, start: int, stop: int) -> tuple[torch.Tensor, torch.Tensor]:
        """A copy of a row's columns before `first` and from `start` to `stop`: (heads, size, head size) each."""
        parts = (torch.cat([t[row, :, :first], t[row, :, start:stop]], dim=1) for t in (self.keys, self.values))
        return next(parts), next(parts)

    def select(self, rows: torch.Tensor) -> None:
        """Keep these rows (repeats allowed)."""
        if self.is_initialized:
            self.keys, self.values = self.keys.index_select(0, rows), self.values.index_select(0, rows)

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.cursor.start + query_length, 0

    def get_seq_length(self) -> int:
        return self.cursor.start

    def get_max_length(self) -> int:
        return self.columns
