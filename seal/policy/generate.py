"""Batched sampling from any transformers causal LM, made for many short episodes on a CPU.

Contexts are padded on the right: a causal model never looks behind a row, so the prefill needs no mask. Equal contexts
are computed once, and so are long beginnings that contexts share, as the docs of the same tools. Sampled tokens go into
columns behind the longest context; positions count a row's own tokens.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from transformers.cache_utils import Cache

from seal.policy.attention import attended, families, neighbours, shares
from seal.policy.base import Action, Codec, Observation
from seal.policy.cache import Block, Cursor, PrefixCache
from seal.policy.nano_model import NanoForCausalLM
from seal.policy.sampling import sample, uniforms

# Of one forward pass, padding included. Measured with 0.9M parameters on one core: 27k tok/s with 1024, 11k with 8192.
PREFILL_TOKENS = {"cpu": 1024, "cuda": 65536}
NO_LOGITS = torch.empty(0, dtype=torch.long)  # one position a row is worse than none: a strided slice, slow in bfloat16
SHARED_TOKENS = 128  # beginnings are shared in steps of so many: each length of them takes a pass of its own


Caches = Sequence[PrefixCache | None]  # of each context, what was computed of its beginning; None keeps nothing


@dataclass(frozen=True, slots=True)
class Decoding:
    """How outputs are sampled, and where they end: at any of `ends`, which is kept, or after `max_new_tokens`."""

    max_new_tokens: int
    temperature: float
    ends: Sequence[int]
    pad_id: int


@torch.no_grad()
def generate(
    model: torch.nn.Module,
    contexts: Sequence[Sequence[int]],
    draws: torch.Tensor | None,
    decoding: Decoding,
    caches: Caches | None = None,
) -> tuple[list[list[int]], list[list[float]]]:
    """Continue every context (none empty).

    Args: `draws` (B, max_new_tokens) in [0, 1), row i for context i alone; None takes the argmax, as temperature 0
    does. `caches`: for each context what was computed of its beginning, brought up to date here; None keeps nothing.
    Returns ids and their logprobs under the sampler (see `seal.policy.sampling.sample`), a list a context.
    """
    if not contexts:
        return [], []
    max_new_tokens, pad_id, ends = decoding.max_new_tokens, decoding.pad_id, decoding.ends
    temperature = decoding.temperature if draws is not None else 0.0
    was_training, device = model.training, next(model.parameters()).device
    model.eval()
    caches = caches or [None] * len(contexts)
    cache, cursor, order, width = _prefill(model, contexts, caches, max_new_tokens, pad_id)

    rows = torch.tensor(order, device=device)  # the context of each row of the block, while the row is in it
    positions = torch.tensor([len(contexts[i]) - 1 for i in order], device=device)
    columns = torch.arange(width + max_new_tokens, device=device)
    readable = (columns < positions[:, None]) | (columns >= width)
    ends = torch.tensor(list(ends), device=device)
    u = torch.zeros(len(contexts), max_new_tokens) if draws is None else draws
    u = u.to(device=device, dtype=torch.float32)
    ids = torch.full((len(contexts), max_new_tokens), pad_id, device=device)
    logprobs = torch.zeros(len(contexts), max_new_tokens, device=device)
    lengths = torch.full((len(contexts),), max_new_tokens, device=device)

    done = torch.zeros(len(contexts), dtype=torch.bool, device=device)
    token = torch.tensor([contexts[i][-1] for i in order], device=device)
    shifts = isinstance(model, NanoForCausalLM)  # which mixes the token before into each embedding
    before = torch.tensor([contexts[i][-2] if len(contexts[i]) > 1 else pad_id for i in order], device=device)
    read = [context[:-1] for context in contexts] if shares(model) else []
    alike = families([read[i] for i in order]) if read else None
    for step in range(max_new_tokens):
        cursor.start = width + step
        with attended(model, alike) as more:
            logits = model(
                input_ids=token[:, None],
                position_ids=positions[:, None],
                attention_mask=_masks(model, readable[:, : width + step + 1], positions, width, step),
                cache=cache,
                use_cache=True,
                logits_to_keep=1,
                **({"before_ids": before[:, None]} if shifts else {}),
                **more,
            ).logits[:, -1]
        before = token
        token, token_logprobs = sample(logits.float(), u[rows, step], temperature)
        ids[rows, step], logprobs[rows, step] = token, token_logprobs
        ended = torch.isin(token, ends) & ~done
        lengths[rows[ended]] = step + 1
        done |= ended
        positions = positions + 1
        leaving = done if step + 1 < max_new_tokens else torch.ones_like(done)
        if 2 * int(leaving.sum()) >= len(rows):
            for row in leaving.nonzero().squeeze(1).tolist():
                i = int(rows[row])
                if memory := caches[i]:
                    _keep(memory, cache, row, contexts[i], ids[i, : int(lengths[i])].tolist(), width)
            live = (~leaving).nonzero().squeeze(1)
            if not len(live):
                break
            state = (rows, done, token, before, positions, readable)
            rows, done, token, before, positions, readable = (t[live] for t in state)
            for layer in cache.layers:
                layer.select(live)
            alike = families([read[i] for i in rows.tolist()]) if alike else None
    model.train(was_training)
    ids, logprobs, sizes = ids.tolist(), logprobs.tolist(), lengths.tolist()
    return [ids[i][:n] for i, n in enumerate(sizes)], [logprobs[i][:n] for i, n in enumerate(sizes)]


def sampled_actions(
    model: torch.nn.Module, codec: Codec, observations: Sequence[Observation], decoding: Decoding, caches: Caches
) -> list[Action]:
    """An output for each observation, by its own seed alone."""
    u, n = None, decoding.max_new_tokens
    if decoding.temperature:
        u = torch.tensor([uniforms(o.seed, o.turn, o.step, n).tolist() for o in observations])
    ids, logprobs = generate(model, [o.ids for o in observations], u, decoding, caches)
    return [action_of(codec, row, row_logprobs, decoding.ends) for row, row_logprobs in zip(ids, logprobs, strict=True)]


def action_of(codec: Codec, ids: Sequence[int], logprobs: Sequence[float], ends: Sequence[int]) -> Action:
    """Sampled ids as an output; one that does not close with an end token was cut."""
    return Action(codec.decode(ids), tuple(ids), tuple(logprobs), "stop" if ids[-1] in ends else "length")


def _prefill(model, contexts, caches, max_new_tokens: int, pad_id: int) -> tuple[Cache, Cursor, list[int], int]:
    """Read all contexts but their last ids, each different one once. Returns the cache, its cursor, the context of each
    row, and the first column that is free in every row."""
    if any(k and k.ids for k in caches):
        return _continue(model, contexts, caches, max_new_tokens, pad_id)
    wanted = [tuple(context[:-1]) for context in contexts]
    prefixes = sorted(set(wanted), key=lambda prefix: (len(prefix), prefix))
    begun = _begun(model, prefixes, pad_id)
    if begun:
        ended = [(*prefix, pad_id) for prefix in prefixes]
        cache, cursor, order, width = _continue(model, ended, begun, max_new_tokens, pad_id)
        prefixes = [prefixes[i] for i in order]
    else:
        width = len(prefixes[-1])
        cache, cursor, device = _blocks(model, len(prefixes), width + max_new_tokens)
        for start, stop in _chunks([len(prefix) for prefix in prefixes], PREFILL_TOKENS.get(device.type, 65536)):
            cursor.rows = slice(start, stop)
            ids = _padded(prefixes[start:stop], pad_id, device)
            model(input_ids=ids, cache=cache, use_cache=True, logits_to_keep=NO_LOGITS)
        cursor.rows = slice(None)
    if wanted != prefixes:
        place = {prefix: i for i, prefix in enumerate(prefixes)}
        source = torch.tensor([place[prefix] for prefix in wanted], device=next(model.parameters()).device)
        for layer in cache.layers:
            layer.select(source)
    return cache, cursor, list(range(len(contexts))), width


def _begun(model, prefixes: Sequence[tuple[int, ...]], pad_id: int) -> list[PrefixCache]:
    """What different prefixes begin alike with, read once; empty where none of them shares enough."""
    shared = shared_beginnings(prefixes, SHARED_TOKENS)
    beginnings = sorted({prefix[:n] for prefix, n in zip(prefixes, shared, strict=True) if n})
    if not beginnings:
        return []
    cache, *_ = _prefill(model, [(*ids, pad_id) for ids in beginnings], [None] * len(beginnings), 0, pad_id)
    read = {ids: [layer.get(row, len(ids), 0, 0) for layer in cache.layers] for row, ids in enumerate(beginnings)}
    begun = (prefix[:n] for prefix, n in zip(prefixes, shared, strict=True))
    return [PrefixCache(list(ids), list(read.get(ids, ()))) for ids in begun]


def shared_beginnings(rows: Sequence[Sequence[int]], step: int) -> list[int]:
    """How many ids at its beginning each row has in common with another one, rounded down to a multiple of `step`."""
    order, common = neighbours(rows)
    found = [0] * len(rows)
    for (i, j), alike in zip(itertools.pairwise(order), common, strict=True):
        n = alike // step * step
        found[i], found[j] = max(found[i], n), max(found[j], n)
    return found


def _continue(model, contexts, caches, max_new_tokens: int, pad_id: int) -> tuple[Cache, Cursor, list[int], int]:
    """`_prefill` of what is new in each context. Columns of a row are positions; padding goes to one column behind."""
    sizes = [k.covers(context) if k else 0 for k, context in zip(caches, contexts, strict=True)]
    news = [len(context) - 1 - size for context, size in zip(contexts, sizes, strict=True)]
    order = sorted(range(len(contexts)), key=lambda i: (news[i], i))
    width = max(len(context) for context in contexts) - 1
    waste = width + max_new_tokens
    cache, cursor, device = _blocks(model, len(contexts), waste + 1)
    for row, i in enumerate(order):
        if memory := caches[i]:
            memory.ids = []
            while memory.layers:  # from the last; what is copied is freed at once
                cache.layers[len(memory.layers) - 1].put(row, sizes[i], *memory.layers.pop())
    shifts = isinstance(model, NanoForCausalLM)
    for start, stop in _chunks([news[i] for i in order], PREFILL_TOKENS.get(device.type, 65536)):
        part = order[start:stop]
        ids = _padded([contexts[i][sizes[i] : -1] for i in part], pad_id, device)
        first = torch.tensor([[sizes[i]] for i in part], device=device)
        last = torch.tensor([[len(contexts[i]) - 1] for i in part], device=device)
        positions = first + torch.arange(ids.shape[1], device=device)
        cursor.rows, cursor.stop = slice(start, stop), int(last.max())
        cursor.columns = positions.where(positions < last, waste)
        before = [[contexts[i][sizes[i] - 1] if sizes[i] else pad_id] for i in part]
        columns = torch.arange(cursor.stop, device=device)
        model(
            input_ids=ids,
            position_ids=positions.minimum(last),
            attention_mask=_by_layer(model, columns <= positions[..., None], positions[..., None] - columns),
            cache=cache,
            use_cache=True,
            logits_to_keep=NO_LOGITS,
            **({"before_ids": torch.tensor(before, device=device)} if shifts else {}),
        )
    cursor.rows, cursor.columns = slice(None), None
    return cache, cursor, order, width


def _blocks(model: torch.nn.Module, rows: int, columns: int) -> tuple[Cache, Cursor, torch.device]:
    cursor = Cursor()
    layers = model.config.get_text_config().num_hidden_layers
    return Cache(layers=[Block(cursor, rows, columns) for _ in range(layers)]), cursor, next(model.parameters()).device


def _padded(rows: Sequence[Sequence[int]], pad_id: int, device: torch.device) -> torch.Tensor:
    """(B, T) ids of rows sorted by length, padded on the right."""
    ids = torch.full((len(rows), len(rows[-1])), pad_id)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = torch.tensor(row)
    return ids.to(device)


def _keep(memory: PrefixCache, cache: Cache, row: int, context: Sequence[int], sampled: list[int], width: int) -> None:
    """Copy what was computed of a row that leaves; its last token was sampled and not read."""
    memory.layers = [layer.get(row, len(context) - 1, width, width + len(sampled)) for layer in cache.layers]
    memory.ids = [*context, *sampled[:-1]]


def _chunks(lengths: Sequence[int], budget: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows (sorted by length) that fill at most `budget` tokens when padded; empty rows need none."""
    start = sum(not length for length in lengths)
    for i in range(start + 1, len(lengths) + 1):
        if i == len(lengths) or (i + 1 - start) * lengths[i] > budget:
            yield start, i
            start = i


def _masks(model, readable: torch.Tensor, positions: torch.Tensor, width: int, step: int):
    """What the next token of each row may look at, (B, 1, columns), as `_by_layer` gives it."""
    columns = torch.arange(width + step + 1, device=readable.device)
    places = torch.where(columns < width, columns, positions[:, None] - step + columns - width)
    return _by_layer(model, readable[:, None], (positions[:, None] - places)[:, None])


def _by_layer(model, readable: torch.Tensor, distance: torch.Tensor):
    """Masks (B, 1, T, columns) from (B, T, columns); by layer type where windows slide in some layers."""
    full = readable[:, None]
    config = model.config.get_text_config()
    names = {"sliding_window": None, "use_sliding_window": True, "layer_types": None}  # not every config has them
    window, slides, types = (getattr(config, name, default) for name, default in names.items())
    if not window or not slides:
        return full
    near = full & (distance < window)[:, None]
    return {"full_attention": full, "sliding_attention": near} if "full_attention" in (types or ()) else near
