"""Batched sampling from any transformers causal LM, made for many short episodes on a CPU.

Contexts are padded on the right: a causal model never looks behind a row, so the prefill needs no mask, and equal
contexts are computed once. Sampled tokens go into columns behind the longest context; positions count a row's own
tokens.
"""

from collections.abc import Iterator, Sequence

import torch
from transformers.cache_utils import Cache, CacheLayerMixin

from seal.policy.sampling import sample

# Of one forward pass, padding included. Measured with 0.9M parameters on one core: 27k tok/s with 1024, 11k with 8192.
PREFILL_TOKENS = {"cpu": 1024, "cuda": 65536}


class _Cursor:
    """Where the next keys and values go: a slice of rows, and the first column."""

    def __init__(self) -> None:
        self.rows, self.start = slice(None), 0


class _Block(CacheLayerMixin):
    """Keys and values of one layer, (rows, heads, columns, head size), allocated once and written at the cursor."""

    is_sliding = False

    def __init__(self, cursor: _Cursor, rows: int, columns: int):
        super().__init__()
        self.cursor, self.rows, self.columns = cursor, rows, columns

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        self.keys = key_states.new_zeros(self.rows, key_states.shape[1], self.columns, key_states.shape[3])
        self.values = value_states.new_zeros(self.rows, value_states.shape[1], self.columns, value_states.shape[3])
        self.is_initialized = True

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *_, **__):
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        rows, start = self.cursor.rows, self.cursor.start
        stop = start + key_states.shape[2]
        self.keys[rows, :, start:stop] = key_states
        self.values[rows, :, start:stop] = value_states
        if start == 0:
            return key_states, value_states
        return self.keys[rows, :, :stop], self.values[rows, :, :stop]

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


@torch.no_grad()
def generate(
    model: torch.nn.Module,
    contexts: Sequence[Sequence[int]],
    uniforms: torch.Tensor | None,
    max_new_tokens: int,
    temperature: float,
    eos_id: int | Sequence[int],
    pad_id: int,
) -> tuple[list[list[int]], list[list[float]]]:
    """Continue every context (none empty) until an end token, which is kept, or `max_new_tokens`.

    Args: `uniforms` (B, max_new_tokens) in [0, 1), row i for context i alone; None takes the argmax, as temperature 0
    does. Returns ids and their logprobs under the sampler (see `seal.policy.sampling.sample`), a list a context.
    """
    if not contexts:
        return [], []
    was_training, device = model.training, next(model.parameters()).device
    model.eval()
    wanted = [tuple(context[:-1]) for context in contexts]
    prefixes = sorted(set(wanted), key=lambda prefix: (len(prefix), prefix))
    cache, cursor = _prefill(model, prefixes, max_new_tokens, pad_id, device)
    width = len(prefixes[-1])
    if wanted != prefixes:
        place = {prefix: i for i, prefix in enumerate(prefixes)}
        source = torch.tensor([place[prefix] for prefix in wanted], device=device)
        for layer in cache.layers:
            layer.select(source)

    positions = torch.tensor([len(context) - 1 for context in contexts], device=device)
    columns = torch.arange(width + max_new_tokens, device=device)
    readable = (columns < positions[:, None]) | (columns >= width)
    ends = torch.tensor([eos_id] if isinstance(eos_id, int) else list(eos_id), device=device)
    temperature = temperature if uniforms is not None else 0.0
    u = torch.zeros(len(contexts), max_new_tokens) if uniforms is None else uniforms
    u = u.to(device=device, dtype=torch.float32)
    ids = torch.full((len(contexts), max_new_tokens), pad_id, device=device)
    logprobs = torch.zeros(len(contexts), max_new_tokens, device=device)
    lengths = torch.full((len(contexts),), max_new_tokens, device=device)

    rows = torch.arange(len(contexts), device=device)  # context of each row still in the batch
    done = torch.zeros(len(contexts), dtype=torch.bool, device=device)
    token = torch.tensor([context[-1] for context in contexts], device=device)
    shifts = getattr(model, "takes_before_ids", False)  # the nano model mixes the token before into each embedding
    before = torch.tensor([context[-2] if len(context) > 1 else pad_id for context in contexts], device=device)
    for step in range(max_new_tokens):
        cursor.start = width + step
        logits = model(
            input_ids=token[:, None],
            position_ids=positions[:, None],
            attention_mask=_masks(model, readable[:, : width + step + 1], positions, width, step),
            cache=cache,
            use_cache=True,
            logits_to_keep=1,
            **({"before_ids": before[:, None]} if shifts else {}),
        ).logits[:, -1]
        before = token
        token, token_logprobs = sample(logits.float(), u[rows, step], temperature)
        ids[rows, step], logprobs[rows, step] = token, token_logprobs
        ended = torch.isin(token, ends) & ~done
        lengths[rows[ended]] = step + 1
        done |= ended
        finished = int(done.sum())
        if finished == len(rows):
            break
        positions = positions + 1
        if 2 * finished >= len(rows):
            kept = (~done).nonzero().squeeze(1)
            live = (rows, done, token, before, positions, readable)
            rows, done, token, before, positions, readable = (t[kept] for t in live)
            for layer in cache.layers:
                layer.select(kept)
    model.train(was_training)
    sizes = lengths.tolist()
    return (
        [row[:n] for row, n in zip(ids.tolist(), sizes, strict=True)],
        [row[:n] for row, n in zip(logprobs.tolist(), sizes, strict=True)],
    )


def _prefill(
    model: torch.nn.Module, prefixes: Sequence[tuple[int, ...]], max_new_tokens: int, pad_id: int, device: torch.device
) -> tuple[Cache, _Cursor]:
    """Keys and values of all prefixes, sorted by length, in columns from 0."""
    cursor = _Cursor()
    config = model.config.get_text_config()
    columns = len(prefixes[-1]) + max_new_tokens
    cache = Cache(layers=[_Block(cursor, len(prefixes), columns) for _ in range(config.num_hidden_layers)])
    for start, stop in _chunks(prefixes, PREFILL_TOKENS.get(device.type, 65536)):
        ids = torch.full((stop - start, len(prefixes[stop - 1])), pad_id)
        for i, prefix in enumerate(prefixes[start:stop]):
            ids[i, : len(prefix)] = torch.tensor(prefix)
        cursor.rows = slice(start, stop)
        model(input_ids=ids.to(device), cache=cache, use_cache=True, logits_to_keep=1)
    cursor.rows = slice(None)
    return cache, cursor


def _chunks(prefixes: Sequence[tuple[int, ...]], budget: int) -> Iterator[tuple[int, int]]:
    """Ranges of prefixes (sorted by length) that fill at most `budget` tokens when padded; empty prefixes need none."""
    start = sum(not prefix for prefix in prefixes)
    for i in range(start + 1, len(prefixes) + 1):
        if i == len(prefixes) or (i + 1 - start) * len(prefixes[i]) > budget:
            yield start, i
            start = i


def _masks(model, readable: torch.Tensor, positions: torch.Tensor, width: int, step: int):
    """What the next token of each row may look at, (B, 1, 1, columns); by layer type where windows slide in some."""
    full = readable[:, None, None, :]
    config = model.config.get_text_config()
    window = getattr(config, "sliding_window", None)
    if not window or not getattr(config, "use_sliding_window", True):
        return full
    columns = torch.arange(width + step + 1, device=readable.device)
    behind = torch.where(columns < width, columns, positions[:, None] - step + columns - width)
    near = (readable & (behind > positions[:, None] - window))[:, None, None, :]
    types = set(getattr(config, "layer_types", None) or ())
    return {"full_attention": full, "sliding_attention": near} if "full_attention" in types else near
