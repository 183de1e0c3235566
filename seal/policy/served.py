"""A vLLM server that samples for a policy whose weights are here: token ids go in, token ids and logprobs come back.

The adapter is saved under the policy's hash and served by that name (`seal-<hash>`), so whoever else has loaded what
into the server, an answer comes from these weights or not at all. Needs of the server: `vllm serve BASE --enable-lora
--max-lora-rank R` with VLLM_ALLOW_RUNTIME_LORA_UPDATING=1, and a version that knows `return_token_ids` (0.10.2). The
model's own sampling defaults (generation_config) are overruled: training needs the plain distribution.
"""

import os
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seal.client.server import NoAnswer, Server
from seal.core.errors import DependencyError, ParamError
from seal.core.types import Json
from seal.policy.base import Observation
from seal.policy.sampling import request_seed
from seal.settings.policies import ServeParams

if TYPE_CHECKING:
    from seal.policy.hf import HFPolicy

# The plain distribution, whatever the model's own defaults say; and all of it as token ids.
PLAIN = {"top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
PLAIN |= dict.fromkeys(("presence_penalty", "frequency_penalty"), 0.0)
AS_IDS = {"logprobs": 0, "return_token_ids": True, "skip_special_tokens": False, "add_special_tokens": False}

Output = tuple[tuple[int, ...], tuple[float, ...]]  # ids and their logprobs


def outputs(
    policy: "HFPolicy", served: str, observations: Sequence[Observation], temperature: float, n: int
) -> tuple[str, list[Output]]:
    """The name that the policy is served by now (`served`: until now), and an output for each observation.

    Raises DependencyError when the server is not there, refuses, or answers from other weights.
    """
    name, server = load_adapter(policy, served), _server(policy.serve)

    def one(o: Observation) -> Output:
        request = {"model": name, "prompt": list(o.ids), "max_tokens": n, "stop_token_ids": list(policy.codec.end_ids)}
        sampler = {"temperature": temperature, "seed": request_seed(o.seed, o.turn, o.step)}
        request |= {**sampler, **PLAIN, **AS_IDS}
        return _output(server.ask("completions", request), request)

    with ThreadPoolExecutor(policy.serve.parallel) as pool:
        return name, list(pool.map(one, observations))


def load_adapter(policy: "HFPolicy", served: str) -> str:
    """Have the server load the policy's adapter as it is now, and forget the one before."""
    if policy.spec.train == "none":
        return policy.spec.base
    if policy.spec.train != "lora":
        raise ParamError("policy.train", policy.spec.train, "a server can follow a LoRA adapter: use lora, or none")
    name = f"seal-{policy.hash}"
    if name == served:
        return name
    folder = Path(policy.serve.adapters).absolute() / name
    if not folder.is_dir():
        partial = folder.with_name(f"{name}.{os.getpid()}")
        partial.mkdir(parents=True)
        policy.save_weights(partial)
        try:
            os.replace(partial, folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster: same bytes
                raise
            shutil.rmtree(partial)
    _command(policy.serve, "load_lora_adapter", {"lora_name": name, "lora_path": str(folder)}, "already")
    if served:
        _command(policy.serve, "unload_lora_adapter", {"lora_name": served}, "not found")
        shutil.rmtree(folder.with_name(served), ignore_errors=True)
    return name


def _output(answer: dict[str, Json], request: dict[str, Any]) -> Output:
    """The sampled ids and logprobs of an answer that is what was asked for."""
    remedy = "serve the base with vLLM 0.10.2 or newer"
    try:
        choice = answer["choices"][0]
        ids, logprobs = tuple(choice["token_ids"]), tuple(map(float, choice["logprobs"]["token_logprobs"]))
        prompt, model, ended = choice.get("prompt_token_ids"), answer.get("model"), choice.get("finish_reason")
    except (LookupError, TypeError, ValueError) as error:
        raise DependencyError("served model", f"an answer without token ids or logprobs ({error!r})", remedy) from None
    if model != request["model"]:
        value = f"{model} answered for {request['model']}"
        raise DependencyError("served model", value, "ask the server itself, not a router that picks models")
    if prompt is not None and prompt != request["prompt"]:
        raise DependencyError("served model", "it read other tokens than it was given", remedy)
    if not ids or len(ids) != len(logprobs) or (ended == "stop") != (ids[-1] in request["stop_token_ids"]):
        value = f"{len(ids)} ids, {len(logprobs)} logprobs, finished by {ended} on {ids[-1:]}"
        raise DependencyError("served model", value, remedy)
    return ids, logprobs


def _server(serve: ServeParams) -> Server:
    remedy = "start it: VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 vllm serve BASE --enable-lora --max-lora-rank RANK"
    return Server.of(serve, "served model", remedy)


def _command(serve: ServeParams, path: str, body: dict[str, Any], done_already: str) -> None:
    """Ask for something whose answer does not matter; a refusal that holds `done_already` is none."""
    try:
        _server(serve).ask(path, body, read=bytes)
    except NoAnswer as error:
        if done_already not in error.reply:
            raise
