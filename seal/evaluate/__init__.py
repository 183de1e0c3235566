"""Held-out scores with intervals, the gate of new interface items, and multi-seed experiments."""
