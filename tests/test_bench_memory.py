"""benchmarks/bench_memory.py with a policy that has weights: it writes its own memory and is asked about it."""

import sys

import pytest
from workspaces import ROOT, command

from seal.policy.start import write_start


@pytest.mark.slow
def test_a_policy_folder_is_scored(tmp_path):
    """The reader knows none of these tools: what is shown is that the whole pass runs, and that its score is none."""
    write_start({"kind": "nano"}, None, tmp_path / "policy")
    words = ("--backends", "kv,rec_sum", "--scenarios", "notetaker", "--max-action-tokens", "24", "--context", "512")
    done = command(tmp_path, sys.executable, str(ROOT / "benchmarks" / "bench_memory.py"), "--policy", "policy", *words)
    kv, rec_sum, counts = done.stdout.splitlines()
    assert kv.split()[:3] == ["policy", "kv", "0.0"] and rec_sum.split()[:3] == ["policy", "rec_sum", "0.0"]
    assert counts.split(", ")[:2] == [f"{'':16}10 conversations", "50 questions"]
