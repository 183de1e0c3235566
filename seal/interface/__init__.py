"""The learning interface: cues as data, rendered by pure functions, evolved from the failure profile."""
