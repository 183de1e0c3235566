"""hf: any transformers causal LM with a chat template, as it is, with a LoRA adapter, or trained in full.

A policy directory holds policy.json (the base by name and digest, and everything else that decides the output) and what
training changed: adapter_config.json and adapter_model.safetensors (PEFT's own format), or weights.safetensors.
"""

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from seal.core.errors import ArtifactError, DependencyError, ParamError
from seal.policy.base import Action, Limits, Observation, Policy
from seal.policy.cache import prefix_caches
from seal.policy.chat import ChatCodec
from seal.policy.generate import Decoding, action_of, sampled_actions
from seal.policy.shards import accelerate_aside, sharded, shards
from seal.settings.policies import HfParams

SMOLLM2 = "smollm2"
LORA_TARGETS = ("down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj")
RESTORE = "restore it with `dvc checkout`"
ADAPTER, ADAPTER_CONFIG, WEIGHTS = "adapter_model.safetensors", "adapter_config.json", "weights.safetensors"
BATCH = 64  # rows that generate at once, at most
# What a pass of decoding costs before it reads a column: SmolLM2-135M on one core, 60 ms against 5 us a row and column.
PASS_TOKENS = {"cpu": 12_000}
DECIDES = ("base", "revision", "train", "dtype", "lora_rank", "lora_alpha", "max_result_tokens", "max_doc_words")
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class HFPolicy(Policy):
    """Policy over a transformers causal LM. `model` is trained in place; `hash` follows its trained weights.

    `base_digest` identifies the base's weights. `batch` is how many rows generate at once, and `keep_tokens` how many
    tokens of live episodes stay read from step to step (of SmolLM2 in bfloat16: 23 kB each). Both bound memory, and
    decide nothing but rounding.
    """

    name = "hf"

    keep_tokens = 200_000

    def __init__(self, model: torch.nn.Module, tokenizer: Any, spec: HfParams, base_digest: str, batch: int = BATCH):
        self.serve, self._served = spec.serve, ""
        self.model, self.tokenizer, self.spec = model.eval(), tokenizer, spec
        self.base_digest, self.batch = base_digest, batch
        self.codec = ChatCodec(tokenizer, spec.max_result_tokens, spec.max_doc_words)
        self.format = self.codec.format
        if tokenizer.pad_token_id is None:  # trainers ask the tokenizer
            tokenizer.pad_token = tokenizer.convert_ids_to_tokens(self.codec.pad_id)
        self._hashed: tuple[tuple[int, ...], str] = ((), "")

    @property
    def hash(self) -> str:
        """16 hex digits over the spec, the base's digest and the trained weights; computed anew when these changed."""
        trained = trained_weights(self.model)
        versions = tuple(number for tensor in trained.values() for number in (tensor.data_ptr(), tensor._version))
        if not self._hashed[1] or versions != self._hashed[0]:
            digest = hashlib.blake2b(digest_size=8)
            digest.update(json.dumps([_decides(self.spec), self.base_digest], sort_keys=True).encode())
            for name, tensor in trained.items():
                digest.update(name.encode())
                digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
            self._hashed = versions, digest.hexdigest()
        return self._hashed[1]

    def live_episodes(self, limits: Limits) -> int:
        """How many episodes may be live, in whole batches: more than stay read would be read anew at every step."""
        return max(1, self.keep_tokens // self._context(limits) // self.batch) * self.batch

    def act(self, observations: Sequence[Observation], temperature: float, limits: Limits) -> list[Action]:
        """See `Policy.act`. Rows of like length generate together; a context with no room for an output overflows.

        With `serve.url` a server samples, from the weights that have this policy's hash.
        """
        n = limits.max_action_tokens
        context = self._context(limits)
        actions = [Action("", finish="overflow")] * len(observations)
        fits = sorted((len(o.ids), i) for i, o in enumerate(observations) if len(o.ids) + n <= context)
        if self.serve.url:
            from seal.policy.served import outputs

            places = [i for _, i in fits]
            self._served, sampled = outputs(self, self._served, [observations[i] for i in places], temperature, n)
            for i, (ids, logprobs) in zip(places, sampled, strict=True):
                actions[i] = action_of(self.codec, ids, logprobs, self.codec.end_ids)
            return actions
        caches = prefix_caches([observations[i] for _, i in fits], n, self.keep_tokens)
        decoding = Decoding(n, temperature, self.codec.end_ids, self.codec.pad_id)
        device = next(self.model.parameters()).device.type
        for part in alike_in_length([length for length, _ in fits], self.batch, PASS_TOKENS.get(device, math.inf)):
            rows = [observations[i] for _, i in fits[part]]
            sampled = sampled_actions(self.model, self.codec, rows, decoding, caches[part])
            for (_, i), action in zip(fits[part], sampled, strict=True):
                actions[i] = action
        return actions

    def _context(self, limits: Limits) -> int:
        return min(limits.context, self.model.config.get_text_config().max_position_embeddings)

    def save(self, path: Path) -> None:
        """Write the policy directory. Byte-stable, and without a path of this machine unless the base is one."""
        path.mkdir(parents=True, exist_ok=True)
        about = {"kind": "hf", "hash": self.hash, "base_digest": self.base_digest, **_decides(self.spec)}
        about |= {"serve": self.serve.model_dump()} if self.serve.url else {}
        _write_json(path / "policy.json", about)
        self.save_weights(path)

    def save_weights(self, path: Path) -> None:
        """What training changed: an adapter in PEFT's format, or a state."""
        if self.spec.train == "lora":
            from peft import get_peft_model_state_dict

            # Embeddings are never trained: looking whether they changed would ask the hub for the base.
            adapter = {"state_dict": trained_weights(self.model), "save_embedding_layers": False}
            _save_tensors(get_peft_model_state_dict(self.model, **adapter), path / ADAPTER)
            _write_json(path / ADAPTER_CONFIG, self.model.peft_config["default"].to_dict())
        elif self.spec.train == "full":
            _save_tensors(trained_weights(self.model), path / WEIGHTS)


def alike_in_length(lengths: Sequence[int], most: int, a_pass: float) -> list[slice]:
    """How to cut rows, sorted by length, into batches of `most` at most that cost least.

    Every row of a batch reads as many columns as the longest, and a batch costs `a_pass` columns beside.
    """
    costs, begins = [0.0], [0]
    for stop in range(1, len(lengths) + 1):
        found = [(costs[i] + a_pass + (stop - i) * lengths[stop - 1], i) for i in range(max(0, stop - most), stop)]
        cost, begin = min(found)
        costs.append(cost)
        begins.append(begin)
    parts, stop = [], len(lengths)
    while stop:
        parts.append(slice(begins[stop], stop))
        stop = begins[stop]
    return parts[::-1]


def _decides(spec: HfParams) -> dict[str, Any]:
    """What decides an hf policy beside its trained weights, as its directory and its hash hold it."""
    return {**{name: value for name, value in spec if name in DECIDES}, "lora_seed": 0}


def trained_weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The parameters that training changes, by name in sorted order; tied ones once."""
    return dict(sorted((name, p) for name, p in model.named_parameters() if p.requires_grad))


def new_hf(spec: HfParams, device: str = "auto", batch: int = BATCH) -> HFPolicy:
    """A fresh policy on the spec's base. Raises DependencyError for a base that is not there, ParamError for one that
    has no layers for a LoRA. `device`: auto, cpu, cuda, ...
    """
    model, tokenizer, digest = _load_base(spec)
    if spec.train == "lora":
        from peft import LoraConfig, get_peft_model

        known = {name.rpartition(".")[2] for name, _ in model.named_modules()}
        targets = [target for target in LORA_TARGETS if target in known]
        if not targets:
            raise ParamError("policy.base", spec.base, f"a LoRA needs one of the layers {', '.join(LORA_TARGETS)}")
        config = LoraConfig(r=spec.lora_rank, lora_alpha=spec.lora_alpha, target_modules=targets, task_type="CAUSAL_LM")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = get_peft_model(model, config)
        config.base_model_name_or_path = spec.base
    else:
        model.requires_grad_(spec.train == "full")
    if not sharded(model):  # whose parts are where they belong
        model = model.to(_device(device))
    return HFPolicy(model, tokenizer, spec, digest, batch)


def codec_at(path: Path) -> ChatCodec:
    """The codec of a policy directory; no weights are loaded. Raises as `load_hf`."""
    spec, _ = _read_about(path)
    with _base_errors(spec):
        tokenizer = _tokenizer(spec, _base_source(spec)[0])
    return ChatCodec(tokenizer, spec.max_result_tokens, spec.max_doc_words)


def load_hf(path: Path, device: str = "auto") -> HFPolicy:
    """Open a policy directory. Raises ArtifactError when a file is broken, or when the base has other weights now."""
    spec, about = _read_about(path)
    policy = new_hf(spec, device)
    if policy.base_digest != about["base_digest"]:
        other = f"{spec.base} is not the base this policy was trained on"
        raise ArtifactError("base of hf policy", other, "install the version it was trained on, or start anew")
    if spec.train != "none":
        _restore(policy, path)
    if policy.hash != about["hash"]:
        raise ArtifactError("hf policy", f"{path}: hash {policy.hash}, recorded {about['hash']}", RESTORE)
    return policy


def _read_about(path: Path) -> tuple[HfParams, dict[str, Any]]:
    """The spec in a policy directory, and all that its policy.json says."""
    try:
        about = json.loads((path / "policy.json").read_text())
        spec = HfParams(**{name: about[name] for name in DECIDES}, serve=about.get("serve", {}))
        _ = about["hash"], about["base_digest"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArtifactError("hf policy", f"{path / 'policy.json'}: {error!r}", RESTORE) from None
    return spec, about


def _restore(policy: HFPolicy, path: Path) -> None:
    """Load the trained weights, all of them."""
    file = path / (ADAPTER if policy.spec.train == "lora" else WEIGHTS)
    try:
        state = load_file(file)
        if policy.spec.train == "lora":
            from peft import set_peft_model_state_dict

            unexpected = set_peft_model_state_dict(policy.model, state).unexpected_keys
        else:
            unexpected = policy.model.load_state_dict(state, strict=False).unexpected_keys
    except (OSError, SafetensorError, RuntimeError) as error:
        raise ArtifactError("hf policy", f"{file}: {error}", RESTORE) from None
    if unexpected or len(state) != len(trained_weights(policy.model)):
        raise ArtifactError("hf policy", f"{file}: {len(state)} tensors, not those that are trained", RESTORE)


def _load_base(spec: HfParams) -> tuple[torch.nn.Module, Any, str]:
    """Model in the spec's dtype, tokenizer, and a digest of the weights."""
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    where, digest = _base_source(spec)
    if not digest and Path(spec.base).is_dir():
        digest = _folder_digest(Path(spec.base))
    logging.disable_progress_bar()
    with _base_errors(spec):
        revision, more = spec.revision or None, _sharding(spec)
        tokenizer = _tokenizer(spec, where)
        with accelerate_aside():
            model = AutoModelForCausalLM.from_pretrained(where, revision=revision, dtype=DTYPES[spec.dtype], **more)
    return model, tokenizer, digest or getattr(model.config, "_commit_hash", None) or spec.revision


def _base_source(spec: HfParams) -> tuple[str | Path, str]:
    """What transformers opens, and the digest of a base that had to be converted ("" for others).

    Converted weights are kept in $SEAL_CACHE (~/.cache/seal where it is not set).
    """
    if spec.base != SMOLLM2:
        return spec.base, ""
    from seal.policy.gguf import convert, file_digest, find_gguf

    source = find_gguf()
    digest = file_digest(source)
    root = Path(os.environ.get("SEAL_CACHE") or Path.home() / ".cache" / "seal")
    return convert(source, root / f"smollm2-{digest[:16]}"), digest


def _tokenizer(spec: HfParams, where: str | Path) -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(where, revision=spec.revision or None)


@contextmanager
def _base_errors(spec: HfParams) -> Iterator[None]:
    """What transformers cannot find is a DependencyError."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        remedy = "check the name and the network, or give a local folder with config.json, tokenizer and safetensors"
        raise DependencyError("base model", f"{spec.base}: {reason}", remedy) from None


def _sharding(spec: HfParams) -> dict[str, Any]:
    """What transformers is told where the launch asks for FSDP: to load this process's part of the base."""
    processes = shards()
    if processes == 1:
        return {}
    if spec.train != "lora":
        raise ParamError("policy.train", spec.train, "lora: FSDP shards what stays as it is (without it: --multi_gpu)")
    from transformers.distributed import DistributedConfig

    return {"distributed_config": DistributedConfig(fsdp_size=processes)}


def _folder_digest(folder: Path) -> str:
    digest = hashlib.blake2b(digest_size=32)
    for path in sorted(p for p in folder.iterdir() if p.suffix in (".json", ".safetensors", ".bin", ".model")):
        digest.update(path.name.encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "blake2b").digest())
    return digest.hexdigest()


def _device(device: str) -> torch.device:
    if device == "auto":
        gpu = os.environ.get("LOCAL_RANK", "0")  # of several processes each has its own
        device = f"cuda:{gpu}" if torch.cuda.is_available() else "cpu"
    return torch.device(device)


def _save_tensors(state: Mapping[str, torch.Tensor], path: Path) -> None:
    tensors = {name: state[name].detach().cpu().contiguous() for name in sorted(state)}
    save_file(tensors, path, metadata={"format": "pt"})


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True, default=_sorted_or_text) + "\n")


def _sorted_or_text(value: Any) -> Any:
    """For JSON: sets are sorted, for their order changes from run to run; enums and the like are text."""
    return sorted(value) if isinstance(value, set | frozenset) else str(value)
