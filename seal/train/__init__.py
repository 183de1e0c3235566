"""From judged rollouts to new weights: advantage, diagnosis weights, training rows, GRPO (TRL), SFT, DPO, loop."""
