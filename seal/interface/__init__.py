"""The learning interface: cues as data, worded and rendered by pure functions."""
