"""A round's training end to end: the shop, a small random nano, real play, verification and diagnosis."""

from dataclasses import replace

import pytest

from seal.core.labels import DEFAULT_PRIORITY
from seal.core.seeds import RoundKey
from seal.diagnose.judge import judge
from seal.env.shop import ShopEnv
from seal.interface.state import InterfaceState, Item
from seal.rollout.collect import collect
from seal.settings.play import CollectParams
from seal.settings.train import TrainParams
from seal.train.loop import train_round
from seal.train.on_policy import OnPolicy

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

ENV = ShopEnv(train=4, dev=1, test=1)
CUE = Item("enum", "wrap_gift.paper", "docs", "blue K5 green K3 red K11", "argument_mismatch", "r1", 3)
INTERFACE = InterfaceState((CUE,))
COLLECT = CollectParams(tasks=3, group_size=4, evolved=2, max_action_tokens=8)


def policy():
    from seal.policy.nano import NanoPolicy, nano_config
    from seal.policy.nano_model import NanoForCausalLM

    torch.set_num_threads(1)
    torch.manual_seed(0)
    return NanoPolicy(NanoForCausalLM(nano_config(layers=1, width=32)).eval())


def round_of(train, tmp_path, collect_params=COLLECT):
    """(policy bytes, result): every second rollout of step 0 is taken as a success, since this policy has none."""
    nano = policy()
    played = collect(ENV, nano, INTERFACE, collect_params, RoundKey("r1", 1, 0))
    judged = [replace(j, success=i % 2 == 0) for i, j in enumerate(judge(ENV, played, DEFAULT_PRIORITY))]
    play = OnPolicy(ENV, INTERFACE, collect_params, DEFAULT_PRIORITY, RoundKey("r1", 1, 0))
    result = train_round(nano, judged, play, train)
    nano.save(tmp_path)
    return (tmp_path / "model.safetensors").read_bytes(), result


@pytest.mark.parametrize("algorithm", ["grpo", "sft"])
def test_a_round_trains_plays_and_repeats_to_the_byte(algorithm, tmp_path):
    train = TrainParams(algorithm=algorithm, steps=2, lr=1e-2)
    (one, first), (two, second) = (round_of(train, tmp_path / name) for name in "ab")
    assert one == two and first == second
    policy().save(tmp_path / "start")
    assert one != (tmp_path / "start/model.safetensors").read_bytes()
    assert [row["rollouts"] for row in first.curve] == [12, 12] and first.curve[0]["mixed_groups"] == 3
    assert len(first.played) == 12 and {j.rollout.mode for j in first.played} == {"full", "off"}
    assert len({j.rollout.policy_hash for j in first.played}) == 1
    assert first.played[0].rollout.policy_hash != policy().hash  # those played later are the updated policy's


def test_where_cues_no_longer_help_later_groups_play_fewer_rollouts_under_them(tmp_path):
    for fade, evolved in ((0.0, 2), (0.5, 1)):  # collected successes are as many with cues as without
        _, result = round_of(TrainParams(steps=2, fade=fade), tmp_path / str(evolved))
        assert sum(not j.bare for j in result.played) == 3 * evolved


def test_the_sampler_and_the_trainer_agree_on_bare_rollouts(tmp_path):
    _, result = round_of(TrainParams(steps=1), tmp_path, COLLECT.model_copy(update={"evolved": 0}))
    assert abs(result.curve[0]["sampler_gap"]) < 1e-4
