"""Playing tasks: what an episode is and how it stops, what of it are tokens to train on, many episodes at once.

`collect` plays the groups of a round, `play` any requests; who plays what is a pure function of seeds (`plan`).
"""
