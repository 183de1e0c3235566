"""What a policy takes in params.yaml: its start's `policy`, by kind."""

from collections.abc import Mapping
from typing import Literal

from seal.settings.servers import OptionalUrl, ServerUrl
from seal.settings.typed import Settings, ranged


class NanoParams(Settings):
    """The shipped nano policy, as it is."""

    kind: Literal["nano"] = "nano"
    "Names this kind of policy."


class ScriptedParams(Settings):
    """Policies without weights: the gold programs, or these with faults."""

    kind: Literal["scripted"] = "scripted"
    "Names this kind of policy."
    variant: Literal["gold", "faulty"] = "gold"
    "Whether there are faults."
    format: Literal["words", "pythonic", "qwen_xml", "llama_json", "openai"] = "words"
    "How its calls are written."
    rate: float = ranged(0.3, 0.0, 1.0)
    "Probability of a fault in a user turn."
    faults: tuple[str, ...] = ()
    "One of these is made (none named: one of all)."


class WarmStartParams(Settings):
    """Supervised steps on gold programs of training tasks, before the first round."""

    tasks: int = ranged(0, 0)
    "How many tasks (0: there is no warm start)."
    steps: int = ranged(40, 1)
    "How many updates."
    lr: float = ranged(2e-4, 0.0, 1.0)
    "Learning rate."
    batch_tokens: int = ranged(8192, 1)
    "Tokens of one update, about."
    max_tokens: int = ranged(0, 0)
    "Where a program is cut (0: nowhere)."


class ServeParams(Settings):
    """A vLLM server that plays for a policy with weights."""

    url: OptionalUrl = ""
    "Up to /v1 (empty: the policy plays by itself)."
    key_env: str = ""
    "The environment variable that holds the server's key."
    seconds: float = ranged(600.0, 0.1)
    "Seconds that an answer may take."
    parallel: int = ranged(64, 1, 4096)
    "Requests at once."
    adapters: str = ".seal/adapters"
    "A folder that the server reads, too: adapters go through it."


class EndpointParams(Settings):
    """A model behind a server, OpenAI-compatible: it plays, is diagnosed and measured, and is not trained."""

    url: ServerUrl
    "The server, up to /v1."
    model: str
    "The model's name on that server."
    kind: Literal["endpoint"] = "endpoint"
    "Names this kind of policy."
    key_env: str = ""
    "The environment variable that holds the server's key."
    seconds: float = ranged(120.0, 0.1)
    "Seconds that an answer may take."
    parallel: int = ranged(8, 1, 1024)
    "Requests at once."
    cache: str = ".seal/endpoint"
    "The folder that keeps the answers."
    max_result_chars: int = ranged(2000, 32)
    "The middle of a tool result that is longer is cut out."
    max_doc_words: int = ranged(64, 0)
    "Words of a tool's description that the prompt shows."


class HfParams(Settings):
    """A causal language model of transformers."""

    kind: Literal["hf"] = "hf"
    "Names this kind of policy."
    base: str = "smollm2"
    "smollm2 (from the installed package), a hub name, or a local folder."
    revision: str = ""
    "Pins the version of a hub name."
    train: Literal["lora", "full", "none"] = "lora"
    "A LoRA adapter (a new one does nothing yet), all weights, or nothing: the base as it is."
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    "Number format of the base; an adapter is kept in float32."
    lora_rank: int = ranged(16, 1, 1024)
    "Rank of the adapter's matrices."
    lora_alpha: int = ranged(32, 1)
    "The adapter counts `lora_alpha` / `lora_rank` times."
    max_result_tokens: int = ranged(96, 8)
    "Tokens of a tool result that the prompt shows."
    max_doc_words: int = ranged(8, 0)
    "Words of a tool's description that the prompt shows."
    warm_start: WarmStartParams = WarmStartParams()
    "What it learns before the first round."
    serve: ServeParams = ServeParams()
    "Who plays."


UNTRAINED = frozenset({"endpoint", "scripted"})  # kinds without weights here
_KINDS = (NanoParams, HfParams, EndpointParams, ScriptedParams)
POLICIES: Mapping[str, type[Settings]] = {params.model_fields["kind"].default: params for params in _KINDS}
