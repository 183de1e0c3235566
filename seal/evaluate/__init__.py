"""Held-out tasks: playing them, and their scores with intervals."""
