"""A Llama whose embedding also sees the previous token.

Looking something up in the docs ("the code after this word") takes an attention head that matches on the *previous*
token. A plain Llama of this size needs thousands of steps to grow one; with a token shift at the embedding
(as in RWKV, arXiv 2305.13048) reading is learned in minutes on two cores.
"""

import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM


class ShiftEmbedding(nn.Embedding):
    """`E[t] + W E[t-1]`; padding shifts nothing into the next token. `before`: ids (B, 1) before a decoding step."""

    before: torch.Tensor | None = None

    def __init__(self, n: int, width: int, padding_idx: int):
        super().__init__(n, width, padding_idx)
        self.shift = nn.Linear(width, width, bias=False)
        nn.init.normal_(self.shift.weight, std=width**-0.5)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """(B, T) ids -> (B, T, D)."""
        first = torch.full_like(ids[:, :1], self.padding_idx) if self.before is None else self.before
        previous = torch.cat([first, ids[:, :-1]], dim=1)
        return super().forward(ids) + self.shift(super().forward(previous) * (previous != self.padding_idx)[..., None])


class NanoForCausalLM(LlamaForCausalLM):
    """LlamaForCausalLM over a ShiftEmbedding. A decoding step of one token needs `before_ids` (B, 1)."""

    takes_before_ids = True

    def __init__(self, config: LlamaConfig):
        super().__init__(config)
        table = self.model.embed_tokens
        shifted = ShiftEmbedding(table.num_embeddings, table.embedding_dim, table.padding_idx)
        shifted.weight = table.weight
        self.model.embed_tokens = shifted
        self.tie_weights()

    def forward(self, *args, before_ids: torch.Tensor | None = None, **kwargs):
        table = self.model.embed_tokens
        table.before = before_ids
        try:
            return super().forward(*args, **kwargs)
        finally:
            table.before = None
