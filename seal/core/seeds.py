"""Seeds and ids as pure functions of what they belong to: no counter, no clock, no global generator.

Seeds use the *depth* of a round in the lineage tree, not its name, so that an unchanged branch equals its sibling to
the byte. Ids use the name, so that no two rollouts of one workspace share an id.
"""

import hashlib
from dataclasses import dataclass


def _digest(*parts: object) -> bytes:
    return hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=8).digest()


def seed_for(run_seed: int, depth: int, phase: str, step: int = 0, task_id: str = "", sample: int = 0) -> int:
    """A seed in [0, 2**63) for one draw of one phase (`collect`, `train`, `evaluate`, ...)."""
    return int.from_bytes(_digest("seed", run_seed, depth, phase, step, task_id, sample)) >> 1


def rollout_id(round_id: str, phase: str, step: int, task_id: str, sample: int) -> str:
    """16 hex digits, unique within a workspace."""
    return _digest("rollout", round_id, phase, step, task_id, sample).hex()


@dataclass(frozen=True, slots=True)
class RoundKey:
    """What names a round and decides its draws: its id, its depth in the tree of rounds, and the run's seed."""

    id: str
    depth: int
    run_seed: int

    def seed(self, phase: str, step: int = 0, task_id: str = "", sample: int = 0) -> int:
        """See `seed_for`."""
        return seed_for(self.run_seed, self.depth, phase, step, task_id, sample)

    def rollout_id(self, phase: str, step: int, task_id: str, sample: int) -> str:
        """See `rollout_id`."""
        return rollout_id(self.id, phase, step, task_id, sample)
