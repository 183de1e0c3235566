"""From judged rollouts to new weights: each round's update of the policy, and what it hands on to the next round.

`train_round` (loop) plays new groups (on_policy), turns outcomes into advantages (advantage), labels into weights
(reweight) and both into rows of tokens (batch), and optimises: GRPO through TRL (grpo), SFT and DPO in plain torch.
"""
