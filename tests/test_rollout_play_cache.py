"""Kept actions: a killed play goes on behind its last finished batch, and ends as if nothing had happened."""

from dataclasses import replace

import pytest
import torch

from seal.core.errors import ArtifactError
from seal.core.seeds import RoundKey
from seal.env.shop import ShopEnv
from seal.policy.base import Action, Limits
from seal.policy.nano import NanoPolicy, nano_config
from seal.policy.nano_model import NanoForCausalLM
from seal.rollout.engine import PlayRun, play
from seal.rollout.plan import requests_for
from seal.rollout.play_cache import PlayCache
from seal.settings.play import CollectParams

ENV = ShopEnv(train=4, dev=1, test=4)
REQUESTS = requests_for(ENV.tasks()[:6], CollectParams(group_size=3), RoundKey("r1", 1, 7))


class Dying:
    """A tiny policy that is killed when it is asked about a rollout of `dies_at`; `asked`: the seeds it was asked."""

    def __init__(self, dies_at=()):
        torch.manual_seed(0)
        self.policy = NanoPolicy(NanoForCausalLM(nano_config(layers=1, width=32)).eval())
        self.dies_at, self.asked = {r.seed for r in dies_at}, set()

    def __getattr__(self, name):
        return getattr(self.policy, name)

    def act(self, observations, temperature, limits):
        self.asked |= {o.seed for o in observations}
        if self.asked & self.dies_at:
            raise KeyboardInterrupt
        return self.policy.act(observations, temperature, limits)


def _play(policy, cache=None, on_progress=None):
    return play(ENV, policy, REQUESTS, limits=Limits(6, 300), run=PlayRun(on_progress, 5, cache))


def test_a_killed_play_asks_for_what_is_left_and_ends_the_same(tmp_path):
    whole, cache, counted = _play(Dying()), PlayCache(tmp_path / "played"), []
    with pytest.raises(KeyboardInterrupt):
        _play(Dying(REQUESTS[12:13]), cache)
    policy = Dying()
    assert _play(policy, cache, on_progress=counted.append) == whole
    assert policy.asked == {r.seed for r in REQUESTS[10:]} and sum(counted) == len(REQUESTS)
    policy = Dying(REQUESTS)  # nothing is left to ask
    assert _play(policy, cache) == whole and not policy.asked


def test_only_the_same_play_takes_them(tmp_path):
    cache = PlayCache(tmp_path / "played")
    _play(Dying(), cache)
    for other in ({"temperature": 0.5}, {"limits": Limits(5, 300)}, {"run": PlayRun(batch=6, cache=cache)}):
        policy = Dying()
        play(ENV, policy, REQUESTS, **{"limits": Limits(6, 300), "run": PlayRun(batch=5, cache=cache), **other})
        assert policy.asked == {r.seed for r in REQUESTS}
    policy = Dying()
    changed = [replace(r, seed=r.seed + 1) for r in REQUESTS]
    play(ENV, policy, changed, limits=Limits(6, 300), run=PlayRun(batch=5, cache=cache))
    assert policy.asked == {r.seed for r in changed}


def test_no_more_live_at_once_than_the_policy_and_the_environment_bear():
    class Narrow(Dying):
        live = 0

        def live_episodes(self, limits):
            return limits.context // 100

        def act(self, observations, *how):
            self.live = max(self.live, len(observations))
            return super().act(observations, *how)

    policy, whole = Narrow(), [r.steps for r in _play(Dying())]
    assert [r.steps for r in _play(policy)] == whole and policy.live == 3
    policy = Narrow()
    assert play(ENV, policy, REQUESTS, limits=Limits(6, 30_000))
    assert policy.live == len(REQUESTS)


@pytest.mark.parametrize("actions", [[], [Action("done")] * 40], ids=["too few", "too many"])
def test_actions_that_do_not_fit_the_environment_any_more_are_an_error(actions, tmp_path, monkeypatch):
    monkeypatch.setattr(PlayCache, "read", lambda *_: [actions] * 5)
    with pytest.raises(ArtifactError, match=r"goes another way(.|\n)*rm -r"):
        _play(Dying(), PlayCache(tmp_path))


def test_a_damaged_file_is_one_error_that_names_it(tmp_path):
    cache = PlayCache(tmp_path)
    _play(Dying(), cache)
    for path in tmp_path.iterdir():
        path.write_text('{"actions": [[["done", [1], 0.5, "stop"]]]}')
    with pytest.raises(ArtifactError, match="made again: rm"):
        _play(Dying(), cache)
