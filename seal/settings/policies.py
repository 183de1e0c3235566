"""What a policy takes in params.yaml: its start's `policy`, by kind."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from seal.settings.typed import URL, ranged


@dataclass(frozen=True, slots=True)
class NanoParams:
    """The shipped nano policy, as it is."""

    kind: Literal["nano"] = "nano"


@dataclass(frozen=True, slots=True)
class ScriptedParams:
    """Policies without weights: gold, or gold with a fault (one of `faults`) in a user turn with probability `rate`."""

    kind: Literal["scripted"] = "scripted"
    variant: Literal["gold", "faulty"] = "gold"
    format: Literal["words", "pythonic", "qwen_xml", "llama_json", "openai"] = "words"
    rate: float = ranged(0.3, 0.0, 1.0)
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WarmStartParams:
    """Supervised steps on the gold programs of `tasks` training tasks, each cut at `max_tokens` (0 tasks: none)."""

    tasks: int = ranged(0, 0)
    steps: int = ranged(40, 1)
    lr: float = ranged(2e-4, 0.0, 1.0)
    batch_tokens: int = ranged(8192, 1)
    max_tokens: int = ranged(0, 0)


@dataclass(frozen=True, slots=True)
class ServeParams:
    """A vLLM server that plays for a policy with weights ("": it plays by itself). `url`: up to /v1; `key_env` names
    the variable that holds its key; `seconds` an answer may take; `parallel` requests at once; `adapters`: a folder
    that the server reads, too."""

    url: str = field(default="", metadata=URL)
    key_env: str = ""
    seconds: float = ranged(600.0, 0.1)
    parallel: int = ranged(64, 1, 4096)
    adapters: str = ".seal/adapters"


@dataclass(frozen=True, slots=True)
class EndpointParams:
    """`model` behind `url` (OpenAI-compatible, up to /v1): plays, is diagnosed and measured, and is not trained.

    Answers are kept under `cache`. `max_result_chars` cuts the middle out of longer tool results.
    """

    url: str = field(metadata=URL)
    model: str
    kind: Literal["endpoint"] = "endpoint"
    key_env: str = ""
    seconds: float = ranged(120.0, 0.1)
    parallel: int = ranged(8, 1, 1024)
    cache: str = ".seal/endpoint"
    max_result_chars: int = ranged(2000, 32)
    max_doc_words: int = ranged(64, 0)


@dataclass(frozen=True, slots=True)
class HfParams:
    """A transformers causal LM: `base` is "smollm2" (from the installed package), a hub name, or a local folder.

    `train`: a LoRA adapter, all weights, or nothing. `max_result_tokens`, `max_doc_words`: how compact prompts are.
    `serve`: who plays.
    """

    kind: Literal["hf"] = "hf"
    base: str = "smollm2"
    revision: str = ""
    train: Literal["lora", "full", "none"] = "lora"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    lora_rank: int = ranged(16, 1, 1024)
    lora_alpha: int = ranged(32, 1)
    max_result_tokens: int = ranged(96, 8)
    max_doc_words: int = ranged(8, 0)
    warm_start: WarmStartParams = field(default_factory=WarmStartParams)
    serve: ServeParams = field(default_factory=ServeParams)


UNTRAINED = frozenset({"endpoint", "scripted"})  # kinds without weights here
POLICIES: Mapping[str, type] = {
    "nano": NanoParams,
    "hf": HfParams,
    "endpoint": EndpointParams,
    "scripted": ScriptedParams,
}
