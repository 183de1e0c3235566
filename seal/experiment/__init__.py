"""Multi-seed comparisons: arms as data, lines of rounds, their results and what they say."""
