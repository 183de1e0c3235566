"""Token logprobs for GRPO. Of rows that share prompts each prompt is read once, and the head sees only what is scored.

Exact: a causal model computes the same keys and values of a prompt whatever follows it, so the rows of a group read
them from one pass, through which the gradient of all of them flows back. Rows stand alone or beside others of nearly
their length, so hardly any padding is computed.
"""

import types
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint
from transformers.cache_utils import Cache, DynamicCache

from seal.policy.nano_model import NanoForCausalLM

HEAD_ROWS = 512  # positions that the head projects at once: of 49k words in float32, 100 MB
MIN_LENGTH = 0.8  # of the longest row in its pass
CPU_TOKENS, GPU_TOKENS = 2048, 16384  # of one forward pass, padding included

Scores = tuple[torch.Tensor, torch.Tensor]  # logprobs and entropies


def add_scored_head(model: torch.nn.Module, temperature: float) -> None:
    """Let `model(input_ids, wanted=mask, targets=ids)` return (logprobs, entropies), each (mask.sum(),), of `targets`.

    `wanted` (B, T) marks the positions whose *next* token is scored; `targets` are those tokens. Without a wanted
    position it returns the cache that it filled. Without `wanted` the model's forward is as it was. Through the model's
    own forward, so that wrappers (PEFT, DDP) see the call.
    """
    original = model.forward

    def forward(self, *args, wanted=None, targets=None, **kwargs):
        if wanted is None:
            return original(*args, **kwargs)
        read = self.base_model(*args, **kwargs)
        if targets is None:
            return read.cache
        return head_scores(read.last_hidden_state[wanted], self.get_output_embeddings(), targets, temperature)

    model.forward = types.MethodType(forward, model)


def head_scores(hidden: torch.Tensor, head: torch.nn.Module, targets: torch.Tensor, temperature: float) -> Scores:
    """Logprobs and entropies (N,) of `targets` (N,) after `hidden` (N, width), in float32.

    The logits of HEAD_ROWS positions are held at once; they are computed again in the backward pass.
    """

    def part(states: torch.Tensor, ids: torch.Tensor) -> Scores:
        logprobs = torch.log_softmax(head(states).float() / temperature, dim=-1)
        entropies = -(logprobs.detach().exp() * logprobs.detach()).sum(-1)
        return logprobs.gather(-1, ids[:, None]).squeeze(-1), entropies

    pieces = zip(hidden.split(HEAD_ROWS), targets.split(HEAD_ROWS), strict=True)
    scores = [checkpoint(part, states, ids, use_reentrant=False) for states, ids in pieces]
    return torch.cat([logprobs for logprobs, _ in scores]), torch.cat([entropies for _, entropies in scores])


def shared_scores(
    model: Callable[..., Any],
    prompts: Sequence[Sequence[int]],
    completions: Sequence[Sequence[int]],
    wanted: torch.Tensor,
) -> Scores:
    """Logprobs and entropies (B, T) of completion tokens where `wanted` (B, T) is 1, else 0.

    Args: `model` after `add_scored_head`; prompts (none empty) and completions as ids; T is the longest completion's.
    """
    if not wanted.any():  # a zero that the model's gradient, 0, belongs to
        one = torch.zeros_like(wanted)
        one[0, 0] = 1
        logprobs, entropies = shared_scores(model, prompts, completions, one)
        return logprobs * 0.0, entropies * 0.0
    device = wanted.device
    places: list[tuple[torch.Tensor, torch.Tensor]] = []
    found: list[Scores] = []
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for i, prompt in enumerate(prompts):
        if bool(wanted[i].any()):
            groups[tuple(prompt)].append(i)
    alone = [members[0] for members in groups.values() if len(members) == 1]
    jobs: list[tuple[tuple[int, ...], list[int]]] = [((), alone)] if alone else []
    jobs += [(prompt[:-1], members) for prompt, members in groups.items() if len(members) > 1]
    for prefix, members in jobs:
        tails = {i: [*prompts[i][len(prefix) :], *completions[i]] for i in members}
        cache = _read(model, prefix, device) if prefix else None
        for part in _parts(members, tails, CPU_TOKENS if device.type == "cpu" else GPU_TOKENS):
            ids = torch.zeros(len(part), max(len(tails[i]) for i in part), dtype=torch.long)
            scored = torch.zeros(ids.shape, dtype=torch.bool)
            column = torch.zeros(ids.shape, dtype=torch.long)
            for row, i in enumerate(part):
                first = len(tails[i]) - len(completions[i])  # of the completion
                ids[row, : len(tails[i])] = torch.tensor(tails[i])
                scored[row, first - 1 : len(tails[i]) - 1] = wanted[i, : len(completions[i])].bool().cpu()
                column[row, first - 1 : len(tails[i]) - 1] = torch.arange(len(completions[i]))
            targets = ids.roll(-1, 1)[scored].to(device)
            past = {"cache": _spread(cache, len(part)), "use_cache": True} if cache else {"use_cache": False}
            found.append(model(input_ids=ids.to(device), wanted=scored.to(device), targets=targets, **past))
            rows = torch.tensor(part)[scored.nonzero()[:, 0]]
            places.append((rows.to(device), column[scored].to(device)))
    logprobs, entropies = zip(*found, strict=True)
    return _put(places, logprobs, wanted.shape), _put(places, entropies, wanted.shape).detach()


def _read(model: Callable[..., Any], prefix: Sequence[int], device: torch.device) -> Cache:
    ids = torch.tensor([prefix], device=device)
    return model(input_ids=ids, wanted=torch.zeros_like(ids, dtype=torch.bool), use_cache=True)


def _spread(cache: Cache, rows: int) -> Cache:
    """A cache of its tails for `rows` rows that begin alike; keys and values stay in the graph."""
    spread = DynamicCache()
    for i, layer in enumerate(cache.layers):
        spread.update(layer.keys.expand(rows, -1, -1, -1), layer.values.expand(rows, -1, -1, -1), i)
    return spread


def _parts(members: Sequence[int], tails: dict[int, list[int]], budget: int) -> Iterator[list[int]]:
    """Members in order of length, in parts of nearly one length that fill at most `budget` tokens."""
    part: list[int] = []
    for i in sorted(members, key=lambda i: (-len(tails[i]), i)):
        if part and (
            len(tails[i]) < MIN_LENGTH * len(tails[part[0]]) or (len(part) + 1) * len(tails[part[0]]) > budget
        ):
            yield part
            part = []
        part.append(i)
    yield part


def can_share(model: torch.nn.Module) -> bool:
    """Whether a model's cache holds all that later tokens read: not with sliding windows, nor nano's embedding."""
    layer_types = set(getattr(model.config.get_text_config(), "layer_types", None) or ("full_attention",))
    return layer_types == {"full_attention"} and not isinstance(model, NanoForCausalLM)


def scores_by_length(
    model: Callable[..., Any],
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    keep: int,
    at_once: int,
    with_entropy: bool = True,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Logprobs and entropies (B, keep) of the last `keep` tokens of rows (B, T) that are padded on both sides.

    Where prompts cannot be shared: sorted by length, `at_once` of them in a pass, moved to the left, never padded
    twice. `model` has TRL's fused head; tokens that `attention_mask` (B, T) hides get 0.
    """
    lengths, first, start = attention_mask.sum(1), attention_mask.argmax(1), input_ids.shape[1] - keep
    places, logprobs, entropies = [], [], []
    for index in lengths.argsort(stable=True).split(at_once):
        offsets = torch.arange(int(lengths[index].max()), device=input_ids.device)
        column = (first[index, None] + offsets).clamp(max=input_ids.shape[1] - 1)
        ids = input_ids[index].gather(1, column)
        scored = (offsets < lengths[index, None]) & (column >= start)
        out = model(input_ids=ids, labels=ids.masked_fill(~scored, -100), fused_lm_head=True)
        row, position = scored[:, 1:].nonzero(as_tuple=True)
        places.append((index[row], column[row, position + 1] - start))
        logprobs.append(out.log_probs[row, position])
        if with_entropy:
            entropies.append(out.entropy[row, position])
    shape = (len(input_ids), keep)
    return _put(places, logprobs, shape), _put(places, entropies, shape) if with_entropy else None


def _put(
    places: Sequence[tuple[torch.Tensor, torch.Tensor]], values: Sequence[torch.Tensor], shape: Sequence[int]
) -> torch.Tensor:
    """The values at their (rows, columns) in zeros of a shape."""
    flat = torch.cat(values)
    return flat.new_zeros(shape).index_put(tuple(map(torch.cat, zip(*places, strict=True))), flat)
