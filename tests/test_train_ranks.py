"""Two processes under `accelerate launch` train what one trains: losses and adapter to 1e-5, on CPUs by gloo."""

import csv
import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from test_policy_served import brief
from workspaces import command, workspace

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


PARAMS = """envs: {{shop: {{train: 4, dev: 1, test: 1}}}}
starts:
  r0:
    env: shop
    recipe: 1
    policy: {{kind: hf, base: {base}, train: lora, lora_rank: 2}}
    evaluate: {{split: dev, tasks: 1, trials: 1, temperature: 0.0, measure_on: true, max_action_tokens: 9, context: 99}}
defaults:
  collect: {{tasks: 3, group_size: 4, evolved: 2, max_action_tokens: 12, context: 2000}}
  train: {{steps: 3, lr: 1.0e-2, beta: 0.01, zero_variance: keep, replay: 4}}
rounds: {{}}
"""


@pytest.fixture
def collected(tmp_path):
    """A workspace whose round r1 is collected, judged and has its interface, from a policy that knows nothing: every
    second rollout is written down as a success."""
    from seal.settings.params import load_params
    from seal.store.parquet import read_parquet, write_parquet
    from seal.workspace.params_file import add_round, resolve

    (folder := tmp_path / "w").mkdir()
    workspace(folder, PARAMS.format(base=brief(tmp_path / "base")), plain=False)
    add_round(folder / "params.yaml", "r1", resolve(load_params(folder / "params.yaml"), "r0", {}))
    for stage, name in (("prepare", "shop"), ("start", "r0"), ("collect", "r1"), ("verify", "r1")):
        command(folder, sys.executable, f"stages/{stage}.py", name)
    outcomes = folder / "data/rounds/r1/verify/outcomes.parquet"
    table = read_parquet(outcomes)
    rows = [{**row, "success": i % 2 == 0} for i, row in enumerate(table.to_pylist())]
    write_parquet(outcomes, table.from_pylist(rows, table.schema))
    for stage in ("diagnose", "evolve_interface"):
        command(folder, sys.executable, f"stages/{stage}.py", "r1")
    return folder


def train_stage(folder):
    """The adapter, the fresh rollouts, and the curve that the train stage leaves."""
    from safetensors.torch import load_file

    from seal.store.tables import rollouts_of

    command(folder, sys.executable, "stages/train.py", "r1", timeout=600)
    here = folder / "data/rounds/r1"
    with (here / "train/curve.csv").open() as file:
        curve = list(csv.DictReader(file))
    return load_file(here / "policy/adapter_model.safetensors"), rollouts_of(here / "train"), curve


def words_of(rollout):
    """All of a rollout but what a rounding of weights changes."""
    return replace(rollout, policy_hash="", tokens=replace(rollout.tokens, logprobs=()))


@pytest.mark.slow
def test_the_train_stage_under_a_launch_plays_and_trains_what_it_does_alone(collected, monkeypatch):
    """Three groups for two processes: who plays which, they share out, and all have all."""
    one, alone, curve = train_stage(collected)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    monkeypatch.setenv("SEAL_LAUNCH", shlex.join(["sh", "-c", 'echo "$@" > launched; exec "$@"', "", *LAUNCH, "2"]))
    two, both, again = train_stage(collected)
    moved = max(tensor.abs().max().item() for name, tensor in one.items() if "lora_B" in name)  # from 0
    apart = max((one[name] - two[name]).abs().max().item() for name in one)
    assert moved > 1e-3 and apart < moved / 100  # sums in another order, which AdamW scales up: 1e-5 to 6e-5 by CPU
    assert (collected / "launched").read_text().split()[-3:] == ["2", "stages/train.py", "r1"]
    assert len(both) == 2 * 3 * 4 and [*map(words_of, both)] == [*map(words_of, alone)]
    for r, other in zip(both, alone, strict=True):
        assert r.tokens.logprobs == pytest.approx(other.tokens.logprobs, abs=1e-4)
    assert len(again) == len(curve) == 3
    for row, other in zip(curve, again, strict=True):
        for name in ("loss", "kl", "sampler_gap"):
            assert float(row[name]) == pytest.approx(float(other[name]), abs=1e-5)


@pytest.mark.parametrize("world", [2, 3, 5])
def test_processes_share_out_the_groups_and_all_have_all(world, monkeypatch):
    """Three groups: each is played once, and stands where one process has it; a process may have none."""
    from test_train_round import COLLECT, ENV, INTERFACE, policy

    from seal.core.labels import DEFAULT_PRIORITY
    from seal.core.seeds import RoundKey
    from seal.train import on_policy
    from seal.train.ranks import Rank

    play = partial(on_policy.OnPolicy(ENV, INTERFACE, COLLECT, DEFAULT_PRIORITY, RoundKey("r1", 1, 0)), policy())
    shares = []
    for more in ((), ((), 2)):  # a step's groups, or two more
        whole = play(1, *more)
        shares.clear()
        with monkeypatch.context() as patched:
            patched.setattr(on_policy, "gathered", lambda value: [shares.append(value) or []])
            for number in range(world):
                patched.setattr(on_policy, "rank", lambda number=number: Rank(number, world))
                play(1, *more)
            assert [len(share) for share in shares] == [4 * len(range(n, len(whole) // 4, world)) for n in range(world)]
            patched.setattr(on_policy, "gathered", lambda value: shares)
            every = play(1, *more)
        assert [words_of(j.rollout) for j in every] == [words_of(j.rollout) for j in whole]


@pytest.mark.parametrize(
    ("words", "told"),
    [("no-such-program --now", "no-such-program: No such file"), ("/ --now", "/: Permission denied")],
)
def test_a_launcher_that_is_no_program_is_one_error(words, told):
    from seal.core.errors import ParamError
    from seal.train.ranks import launch

    with pytest.raises(ParamError, match=told) as caught:
        launch(words)
    assert caught.value.thing == "SEAL_LAUNCH"
    assert launch("") is None


def test_a_launcher_gets_the_script_and_its_words(tmp_path):
    """The words of the launcher are split as a shell does; the process becomes it."""
    code = "import os, sys, seal.train.ranks as r; print(os.getpid(), flush=True); r.launch(sys.argv.pop(1))"
    tell = "import os, sys; print(os.getpid(), sys.argv[1:])"
    launcher = shlex.join([sys.executable, "-c", tell, "two words"])
    (tmp_path / "script.py").write_text(code)
    done = command(tmp_path, sys.executable, "script.py", launcher, "r1")
    before, after = done.stdout.splitlines()
    assert after == f"{before} ['two words', 'script.py', 'r1']"


def test_each_process_takes_its_rows_of_the_same_minibatches():
    from seal.train.batch import TrainRow
    from seal.train.ranks import Rank
    from seal.train.trainer import rows_of_process

    def row(name):
        return TrainRow(name, (1,), (2,), (1,), (0.0,), (0,), (1.0,))

    rows, blank = [row(str(i)) for i in range(10)], row("")
    torch.manual_seed(3)
    order = torch.randperm(10).tolist()
    shares = []
    for number in range(3):
        torch.manual_seed(3)
        shares.append([r.rollout_id for r in rows_of_process(rows, 2, Rank(number, 3), blank)])
    assert {len(share) for share in shares} == {4}  # two minibatches of five rows on three processes
    for part in (0, 1):
        there = sorted(name for share in shares for name in share[2 * part : 2 * part + 2] if name)
        assert there == sorted(str(i) for i in order[5 * part : 5 * part + 5])
