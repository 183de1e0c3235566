"""Two processes under `accelerate launch` train what one trains: losses and adapter to 1e-5, on CPUs by gloo."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
HERE = Path(__file__).parent
LAUNCH = [
    *(sys.executable, "-m", "accelerate.commands.accelerate_cli", "launch", "--multi_gpu", "--num_machines", "1"),
    *("--mixed_precision", "no", "--dynamo_backend", "no", "--main_process_port", "0", "--num_processes"),
]


def trained(folder, processes, *arguments):
    from safetensors.torch import load_file

    folder.mkdir()
    start = [*LAUNCH, str(processes)] if processes > 1 else [sys.executable]
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{HERE.parent}{os.pathsep}{HERE}"}
    env |= {"PYTHONHASHSEED": "0", "TRL_EXPERIMENTAL_SILENCE": "1", "ACCELERATE_USE_CPU": "true"}
    command = [*start, str(HERE / "ranks_script.py"), str(folder), *map(str, arguments)]
    done = subprocess.run(command, env=env, cwd=folder, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return load_file(folder / "adapter.safetensors"), json.loads((folder / "curve.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize(("minibatches", "micro_batch"), [(1, 0), (2, 2)])
def test_two_processes_give_the_losses_and_the_adapter_of_one(minibatches, micro_batch, tmp_path):
    one, curve = trained(tmp_path / "one", 1, minibatches, micro_batch)
    two, again = trained(tmp_path / "two", 2, minibatches, micro_batch)
    moved = max(tensor.abs().max().item() for name, tensor in one.items() if "lora_B" in name)  # from 0
    assert moved > 1e-3
    assert max((one[name] - two[name]).abs().max().item() for name in one) < 1e-5
    for row, other in zip(curve, again, strict=True):
        assert row["loss"] == pytest.approx(other["loss"], abs=1e-5)
        assert row["kl"] == pytest.approx(other["kl"], abs=1e-5)
        assert row["sampler_gap"] == pytest.approx(other["sampler_gap"], abs=1e-5)


def test_each_process_takes_its_rows_of_the_same_minibatches():
    from seal.train.batch import TrainRow
    from seal.train.ranks import Rank
    from seal.train.trainer import own_share

    def row(name):
        return TrainRow(name, (1,), (2,), (1,), (0.0,), (0,), (1.0,))

    rows, blank = [row(str(i)) for i in range(10)], row("")
    torch.manual_seed(3)
    order = torch.randperm(10).tolist()
    shares = []
    for number in range(3):
        torch.manual_seed(3)
        shares.append([r.rollout_id for r in own_share(rows, 2, Rank(number, 3), blank)])
    assert {len(share) for share in shares} == {4}  # two minibatches of five rows on three processes
    for part in (0, 1):
        there = sorted(name for share in shares for name in share[2 * part : 2 * part + 2] if name)
        assert there == sorted(str(i) for i in order[5 * part : 5 * part + 5])
