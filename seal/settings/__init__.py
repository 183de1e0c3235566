"""Settings: params.yaml as typed, range-checked, immutable values, and the JSON Schema that editors read.

Each module answers one question: how tasks are played, how the interface evolves, how the policy trains, and so on;
`params` reads the whole file, `typed` says what is wrong with it in one clear error.
"""

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = ["envs", "evolve", "params", "play", "policies", "rounds", "train", "typed"]
