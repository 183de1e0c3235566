"""Playing tasks: what an episode is and how it stops, what of it are tokens to train on, many episodes at once.

`collect` plays the groups of a round, `play` any requests; who plays what is a pure function of seeds (`plan`).
"""

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = ["collect", "engine", "plan", "play_cache"]
