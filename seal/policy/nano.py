"""nano: a Llama of under a million parameters with its own word tokenizer, trained in full, fast on two cores.

It starts from the reader (`seal/policy/reader.safetensors`, trained by `python -m seal.policy.pretrain`), which knows
how to read tool docs and nothing about any built-in domain.
"""

import hashlib
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, PreTrainedTokenizerFast

from seal.core.errors import ArtifactError, ParamError
from seal.env.base import Environment
from seal.policy.base import Action, Limits, Observation, Policy
from seal.policy.cache import prefix_caches
from seal.policy.generate import Decoding, sampled_actions
from seal.policy.nano_model import NanoForCausalLM
from seal.policy.words import END, PAD, UNK, WordCodec, build_vocabulary

KEEP_TOKENS = 200_000  # of live episodes, 4 kB each (see seal.policy.cache)
READER = "reader.safetensors"
READER_SHA256 = "85537c77ce8f88ea271cfa1f00e5d16cd2ccb49dac1282dba1cb1c07b32800e4"


def nano_config(layers: int = 4, width: int = 128, context: int = 512) -> LlamaConfig:
    """The architecture: `layers` blocks of `width`, heads of 32, tied embeddings over the vocabulary."""
    return LlamaConfig(
        vocab_size=-(-len(build_vocabulary()) // 64) * 64,
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=width // 32,
        num_key_value_heads=width // 32,
        max_position_embeddings=context,
        tie_word_embeddings=True,
        pad_token_id=PAD,
        bos_token_id=None,
        eos_token_id=END,
    )


def tokenizer_of(vocabulary: Sequence[str]) -> PreTrainedTokenizerFast:
    """The vocabulary as a transformers tokenizer, for trainers that ask for one; ids equal the codec's."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    inner = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token=vocabulary[PAD], unk_token=vocabulary[UNK], eos_token=vocabulary[END]
    )


def check_reads(env: Environment) -> None:
    """Raise ParamError where a task's docs or first message hold words outside of the lexicon: all would be <unk>."""
    task = env.tasks()[0]
    docs = " ".join(part for doc in env.docs(task, 0) for part in (doc.name, doc.description))
    codec = WordCodec(build_vocabulary())
    unread = [word for word in f"{docs} {task.turns[0].message}".split() if UNK in codec.encode(word)]
    if unread:
        remedy = f"it reads the built-in domains alone, not {', '.join(unread[:3])}: take kind hf"
        raise ParamError("policy.kind", f"nano in {env.name}", remedy)


class NanoPolicy(Policy):
    """Policy over a word-level Llama. `model` is trained in place; `hash` follows its weights."""

    name = "nano"
    format = "words"

    def __init__(self, model: NanoForCausalLM):
        self.model = model
        self.codec = WordCodec(build_vocabulary())
        self.tokenizer = tokenizer_of(self.codec.vocabulary)

    @property
    def hash(self) -> str:
        """16 hex digits over all weights."""
        digest = hashlib.blake2b(digest_size=8)
        for name, tensor in sorted(self.model.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def act(self, observations: Sequence[Observation], temperature: float, limits: Limits) -> list[Action]:
        actions = [Action("", finish="overflow")] * len(observations)
        fits = [i for i, o in enumerate(observations) if len(o.ids) + limits.max_action_tokens <= limits.context]
        if not fits:
            return actions
        chosen = [observations[i] for i in fits]
        n = limits.max_action_tokens
        caches, decoding = prefix_caches(chosen, n, KEEP_TOKENS), Decoding(n, temperature, (END,), PAD)
        for i, action in zip(fits, sampled_actions(self.model, self.codec, chosen, decoding, caches), strict=True):
            actions[i] = action
        return actions

    def save(self, path: Path) -> None:
        """Write the policy directory: policy.json, config.json, model.safetensors. Byte-stable."""
        path.mkdir(parents=True, exist_ok=True)
        (path / "policy.json").write_text(json.dumps({"kind": "nano", "hash": self.hash}, sort_keys=True) + "\n")
        of = self.model.config
        shape = {"layers": of.num_hidden_layers, "width": of.hidden_size, "context": of.max_position_embeddings}
        (path / "config.json").write_text(json.dumps(shape, sort_keys=True) + "\n")
        save_file(shared_weights(self.model), path / "model.safetensors")


def shared_weights(model: NanoForCausalLM, dtype: torch.dtype = torch.float32) -> dict[str, torch.Tensor]:
    """The state without the tied head."""
    state = model.state_dict()
    return {name: state[name].detach().to(dtype).contiguous() for name in sorted(state) if name != "lm_head.weight"}


def _build(shape: dict[str, int], weights: dict[str, torch.Tensor]) -> NanoPolicy:
    model = NanoForCausalLM(nano_config(**shape)).float()
    missing = model.load_state_dict({name: t.float() for name, t in weights.items()}, strict=False).missing_keys
    if set(missing) - {"lm_head.weight"}:
        raise ArtifactError("nano weights", f"without {sorted(missing)[0]}", "restore the policy with `dvc checkout`")
    model.tie_weights()
    return NanoPolicy(model.eval())


def load_nano(path: Path) -> NanoPolicy:
    """Load a policy directory. Raises ArtifactError when a file is missing or broken, or the weights are others."""
    remedy = "restore it with `dvc checkout`"
    try:
        recorded = json.loads((path / "policy.json").read_text())["hash"]
        policy = _build(json.loads((path / "config.json").read_text()), load_file(path / "model.safetensors"))
    except (OSError, ValueError, RuntimeError, KeyError, TypeError, SafetensorError) as error:
        raise ArtifactError("nano policy", f"{path}: {error}", remedy) from None
    if policy.hash != recorded:
        raise ArtifactError("nano policy", f"{path}: hash {policy.hash}, recorded {recorded}", remedy)
    return policy


def reader_policy() -> NanoPolicy:
    """The nano policy as it ships: the reader. Raises ArtifactError when the file is not the pinned one."""
    with resources.as_file(resources.files("seal.policy") / READER) as path:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if digest != READER_SHA256:
            raise ArtifactError("reader weights", digest, f"expected sha256 {READER_SHA256}: reinstall the package")
        weights = load_file(path)
    width = weights["model.embed_tokens.weight"].shape[1]
    layers = 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("model.layers."))
    return _build({"layers": layers, "width": width, "context": 512}, weights)
