"""FSDP: processes that share out the base train what one trains, on CPUs by gloo; a launch that cannot is told so."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_policy_chat import CHATML, byte_tokenizer

from seal.core.errors import ParamError
from seal.policy.shards import requested, shards

torch = pytest.importorskip("torch")
HERE = Path(__file__).parent
LAUNCH = [
    *(sys.executable, "-m", "accelerate.commands.accelerate_cli", "launch", "--use_fsdp", "--fsdp_version", "2"),
    *("--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0"),
]


@pytest.fixture(autouse=True)
def launcher(monkeypatch):
    for name in ("ACCELERATE_USE_FSDP", "FSDP_VERSION", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def llama(folder, tied=True):
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = byte_tokenizer(CHATML, "<|im_end|>")
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = LlamaConfig(vocab_size=len(tokenizer), max_position_embeddings=256, tie_word_embeddings=tied, **shape)
    LlamaForCausalLM(config).save_pretrained(folder)
    return str(folder)


def launched(start, out, processes, micro_batch=0, stop=-1):
    command = [*LAUNCH, "--num_processes", str(processes)] if processes > 1 else [sys.executable]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{HERE.parent}{os.pathsep}{HERE}"}
    env |= {"PYTHONHASHSEED": "0", "TRL_EXPERIMENTAL_SILENCE": "1", "ACCELERATE_USE_CPU": "true"}
    command += [str(HERE / "shards_script.py"), str(start), str(out), str(micro_batch), str(stop)]
    return subprocess.run(command, env=env, cwd=out.parent, capture_output=True, text=True, check=False, timeout=600)


def trained(start, out, processes, micro_batch):
    """The adapter, and what shards_script.py tells."""
    from safetensors.torch import load_file

    done = launched(start, out, processes, micro_batch)
    assert done.returncode == 0, done.stderr[-3000:]
    return load_file(out / "adapter_model.safetensors"), json.loads(out.with_suffix(".json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize(("tied", "micro_batch"), [(True, 2), (False, 0)])
def test_a_sharded_base_trains_the_adapter_of_a_whole_one(tied, micro_batch, tmp_path):
    from seal.policy.hf import load_hf, new_hf
    from seal.settings.policies import HfParams

    start = tmp_path / "start"
    new_hf(HfParams(base=llama(tmp_path / "base", tied), lora_rank=2), device="cpu").save(start)
    one, alone = trained(start, tmp_path / "one", 1, micro_batch)
    two, both = trained(start, tmp_path / "two", 2, micro_batch)
    assert (alone["sharded"], both["sharded"]) == (False, True)
    assert sum(both["held"]) == alone["held"][0]  # nothing is held twice
    assert max(both["held"]) < 0.51 * alone["held"][0]
    moved = max(tensor.abs().max().item() for name, tensor in one.items() if "lora_B" in name)  # from 0
    assert moved > 1e-2
    assert max((one[name] - two[name]).abs().max().item() for name in one) < 1e-5
    for row, other in zip(alone["curve"], both["curve"], strict=True):
        for name in ("loss", "kl", "sampler_gap"):
            assert row[name] == pytest.approx(other[name], abs=1e-5)
    assert both["played"][0] == alone["played"][0][:2]  # of a base gathered meanwhile
    again = load_hf(tmp_path / "two", device="cpu")  # as any policy: it verifies the hash
    assert both["hash"] == [again.hash] * 2
    assert sorted(p.name for p in (tmp_path / "two").iterdir()) == sorted(p.name for p in (tmp_path / "one").iterdir())

    if tied:
        assert launched(start, tmp_path / "killed", 2, micro_batch, stop=1).returncode
        state = tmp_path / "killed.state"
        assert (state / "state.pt").exists() and not (tmp_path / "killed").exists()
        trained(start, tmp_path / "killed", 2, micro_batch)
        name = "adapter_model.safetensors"
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_launch_asks_for_fsdp_2_or_is_told_what_is_not_there(launcher):
    launcher.setenv("WORLD_SIZE", "4")
    assert shards() == 1
    launcher.setenv("ACCELERATE_USE_FSDP", "true")
    with pytest.raises(ParamError, match="--fsdp_version 2"):
        requested()
    launcher.setenv("FSDP_VERSION", "2")
    assert shards() == 4
    for name in ("FSDP_OFFLOAD_PARAMS", "FSDP_ACTIVATION_CHECKPOINTING"):
        with launcher.context() as more, pytest.raises(ParamError, match="leave it out"):
            more.setenv(name, "true")
            requested()


def test_only_a_base_under_a_lora_is_sharded(launcher, tmp_path):
    from seal.policy.hf import new_hf
    from seal.settings.policies import HfParams

    base = llama(tmp_path)
    launcher.setenv("WORLD_SIZE", "2")
    launcher.setenv("ACCELERATE_USE_FSDP", "true")
    launcher.setenv("FSDP_VERSION", "2")
    with pytest.raises(ParamError, match="lora: FSDP shards"):
        new_hf(HfParams(base=base, train="full"), device="cpu")


def test_a_model_that_is_not_sharded_is_no_model_for_fsdp(launcher):
    from train_cases import tiny_policy

    from seal.settings.train import TrainParams
    from seal.train.grpo import train
    from seal.train.optimise import Steps, UpdatePlan

    launcher.setenv("WORLD_SIZE", "2")
    launcher.setenv("ACCELERATE_USE_FSDP", "true")
    launcher.setenv("FSDP_VERSION", "2")
    with pytest.raises(ParamError, match="not sharded"):
        train(tiny_policy(), UpdatePlan(TrainParams(steps=1), 2), Steps(None, None), None)


def test_a_base_is_gathered_to_play_unless_a_server_plays():
    from types import SimpleNamespace

    from seal.policy.shards import playing

    class Weights:
        is_distributed_loading_by_transformers = True

        def modules(self):
            raise AssertionError("gathered")

    with playing(SimpleNamespace(model=Weights(), serve=SimpleNamespace(url="http://localhost:8000/v1"))):
        pass
    with (
        pytest.raises(AssertionError, match="gathered"),
        playing(SimpleNamespace(model=Weights(), serve=SimpleNamespace(url=""))),
    ):
        pass
