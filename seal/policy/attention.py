"""Attention of one sampled token a row, where rows begin alike: what they share is read once for all of them.

On a CPU a decoding step spends most of its time reading keys and values. Rows with the docs of the same tools have
equal ones in their first columns, so their queries become one matrix there (as in Hydragen, arXiv 2402.05099), and
heads that share keys (grouped queries) are one matrix elsewhere.
"""

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from transformers import AttentionInterface

NAME = "seal_families"


@dataclass(frozen=True, slots=True)
class Families:
    """Rows of a block whose first `columns` are alike within each of `rows` (indices; every row is in one of them).

    A row that is alone in its family may have less to read than that: its mask says so.
    """

    columns: int
    rows: tuple[torch.Tensor, ...]


def families(rows: Sequence[Sequence[int]]) -> Families | None:
    """The columns and families that save most, for what each row has read; None where no two rows begin alike."""
    order, common = neighbours(rows)
    saved = {n: n * sum(other >= n for other in common) for n in {*common} if n}
    if not saved:
        return None
    columns = max(saved, key=lambda n: (saved[n], n))
    found = [order[:1]]
    for i, n in zip(order[1:], common, strict=True):
        if n >= columns:
            found[-1].append(i)
        else:
            found.append([i])
    return Families(columns, tuple(map(torch.tensor, found)))


def neighbours(rows: Sequence[Sequence[int]]) -> tuple[list[int], list[int]]:
    """The rows in sorted order, where neighbours share most, and how many ids each begins alike with the one before."""
    order = sorted(range(len(rows)), key=lambda i: rows[i])
    pairs = (zip(rows[i], rows[j]) for i, j in itertools.pairwise(order))
    return order, [sum(1 for _ in itertools.takewhile(lambda ids: ids[0] == ids[1], pair)) for pair in pairs]


def shares(model: torch.nn.Module) -> bool:
    """Whether this model is attended to here: on a CPU, and with heads that share keys."""
    config = model.config.get_text_config()
    heads, keys = (getattr(config, name, None) or 0 for name in ("num_attention_heads", "num_key_value_heads"))
    grouped = 0 < keys < heads
    return grouped and config._attn_implementation == "sdpa" and next(model.parameters()).device.type == "cpu"


@contextmanager
def attended(model: torch.nn.Module, alike: Families | None) -> Iterator[dict[str, Any]]:
    """Within it, `model` attends by these families; gives what its calls have to be told. None leaves it as it is."""
    if alike is None:
        yield {}
        return
    config = model.config.get_text_config()
    before = config._attn_implementation
    config._attn_implementation = NAME
    try:
        yield {"families": alike}
    finally:
        config._attn_implementation = before


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor,
    scaling: float,
    families: Families,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """In the form of transformers' attention functions: query (B, H, 1, D), key and value (B, KV, columns, D), a mask
    (B, 1, 1, columns) that is true where a row may look."""
    heads, size = key.shape[1], query.shape[3]
    q, shared = query.view(len(query), heads, -1, size), families.columns
    scores = torch.empty(*q.shape[:3], key.shape[2], dtype=torch.float32)
    # Keys come first in the product: with a few queries, the other way round takes three times as long in bfloat16.
    scores[..., shared:] = (key[:, :, shared:] @ q.transpose(2, 3)).transpose(2, 3)
    for rows in families.rows:
        queries = q[rows].transpose(0, 1).flatten(1, 2)  # (KV, rows x group, D)
        found = (key[rows[0], :, :shared] @ queries.transpose(1, 2)).transpose(1, 2)
        scores[rows, :, :, :shared] = found.unflatten(1, (len(rows), -1)).transpose(0, 1).float()
    scores.mul_(scaling).masked_fill_(~attention_mask, -torch.inf)
    weights = scores.softmax(-1).to(value.dtype)
    out = weights[..., shared:] @ value[:, :, shared:]
    for rows in families.rows:
        of_rows = weights[rows, :, :, :shared].transpose(0, 1).flatten(1, 2)
        found = (of_rows @ value[rows[0], :, :shared]).unflatten(1, (len(rows), -1)).transpose(0, 1)
        out[rows] += found
    return out.view(len(query), 1, -1, size), None


AttentionInterface.register(NAME, attend)
