"""A Llama whose embedding also sees the previous token.

Looking something up in the docs ("the code after this word") takes an attention head that matches on the *previous*
token. A plain Llama of this size needs thousands of steps to grow one; with a token shift at the embedding
(as in RWKV, arXiv 2305.13048) it is there from the start, and reading is learned in minutes on two cores.
"""

import torch
from torch import nn
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM


class ShiftCache(DynamicCache):
    """A key-value cache that also keeps the last ids (B, 1), which the next step's shift needs."""

    last_ids: torch.Tensor | None = None

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        super().batch_select_indices(indices)
        self.last_ids = self.last_ids[indices]


class NanoForCausalLM(LlamaForCausalLM):
    """LlamaForCausalLM with `embedding(t) = E[t] + shift(E[t-1])`; padding shifts nothing into the token after it."""

    def __init__(self, config: LlamaConfig):
        super().__init__(config)
        self.shift = nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        nn.init.normal_(self.shift.weight, std=config.hidden_size**-0.5)

    def embed(self, ids: torch.Tensor, before: torch.Tensor | None = None) -> torch.Tensor:
        """(B, T) ids, and the (B, 1) ids before them if there are any -> (B, T, D)."""
        pad = self.config.pad_token_id
        first = torch.full_like(ids[:, :1], pad) if before is None else before
        previous = torch.cat([first, ids[:, :-1]], dim=1)
        table = self.model.embed_tokens
        return table(ids) + self.shift(table(previous) * (previous != pad)[..., None])

    def forward(self, input_ids=None, past_key_values=None, use_cache=None, **kwargs):
        if use_cache and past_key_values is None:
            past_key_values = ShiftCache(config=self.config)
        before = getattr(past_key_values, "last_ids", None)
        embeds = self.embed(input_ids, before)
        if isinstance(past_key_values, ShiftCache):
            past_key_values.last_ids = input_ids[:, -1:]
        return super().forward(inputs_embeds=embeds, past_key_values=past_key_values, use_cache=use_cache, **kwargs)
