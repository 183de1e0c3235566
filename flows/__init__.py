"""Prefect flows: they say in which order DVC runs what, and keep artifacts for people."""
