"""From judged rollouts to new weights: advantages from outcomes, diagnosis weights on turns, then GRPO, SFT or DPO.

`loop` trains a round; `advantage` and `reweight` decide what each token gets; `trainer` is TRL's, fed with our rows
(`trl_private` lists what it overrides). torch and TRL load when training begins, not on import.
"""

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = ["batch", "curve", "label_shares", "loop", "on_policy", "preferences", "ranks", "replay", "reweight"]
