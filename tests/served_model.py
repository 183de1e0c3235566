"""A local server that answers as vLLM does: ids and logprobs of a model in this process, LoRA adapters by name."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import torch
from safetensors.torch import load_file


class FakeVllm:
    """Serves `new_policy()` (an HFPolicy of the base with a fresh adapter), whose adapter requests pick by name."""

    def __init__(self, new_policy):
        self.new_policy, self.adapters, self.requests = new_policy, {}, []
        self.broken = lambda answer: answer
        self.lock = threading.Lock()

    def handle(self, path: str, body: dict) -> tuple[int, str]:
        self.requests.append((path, body))
        if path == "/v1/load_lora_adapter":
            if body["lora_name"] in self.adapters:
                return 400, json.dumps({"error": {"message": f"{body['lora_name']} has already been loaded"}})
            from peft import set_peft_model_state_dict

            policy = self.new_policy()
            assert (Path(body["lora_path"]) / "adapter_config.json").is_file()
            set_peft_model_state_dict(policy.model, load_file(Path(body["lora_path"]) / "adapter_model.safetensors"))
            self.adapters[body["lora_name"]] = policy
            return 200, f"Success: LoRA adapter '{body['lora_name']}' added successfully."
        if path == "/v1/unload_lora_adapter":
            self.adapters.pop(body["lora_name"])
            return 200, "Success"
        if path == "/v1/completions":
            if body["model"] not in self.adapters:
                return 404, json.dumps({"error": {"message": f"The model `{body['model']}` does not exist."}})
            with self.lock:
                return 200, json.dumps(self.broken(self.completion(self.adapters[body["model"]], body)))
        return 404, "no such place"

    @torch.no_grad()
    def completion(self, policy, body: dict) -> dict:
        generator = torch.Generator().manual_seed(body["seed"])
        ids, logprobs = list(body["prompt"]), []
        for _ in range(body["max_tokens"]):
            scores = policy.model(input_ids=torch.tensor([ids])).logits[0, -1].float()
            chances = (scores / (body["temperature"] or 1e-6)).softmax(-1)
            token = int(torch.multinomial(chances, 1, generator=generator))
            logprobs.append(float(scores.log_softmax(-1)[token]))
            ids.append(token)
            if token in body["stop_token_ids"]:
                break
        sampled = ids[len(body["prompt"]) :]
        ended = sampled[-1] in body["stop_token_ids"]
        choice = {
            "index": 0,
            "text": "",
            "token_ids": sampled,
            "prompt_token_ids": body["prompt"],
            "logprobs": {"tokens": [str(i) for i in sampled], "token_logprobs": logprobs},
            "finish_reason": "stop" if ended else "length",
        }
        return {"object": "text_completion", "model": body["model"], "choices": [choice]}


class FakeChat:
    """Any OpenAI-compatible chat server: `reply(body)` gives the answer, as JSON, and its status."""

    def __init__(self, reply):
        self.reply, self.requests = reply, []

    def handle(self, path: str, body: dict) -> tuple[int, str]:
        self.requests.append((path, body))
        status, answer = self.reply(body)
        return status, json.dumps(answer)


@contextmanager
def serving(fake):
    """Yields the URL up to /v1."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            fake.key = self.headers.get("Authorization", "")
            status, text = fake.handle(self.path, body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
