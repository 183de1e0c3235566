"""Environments. `load_env(name, params)` is the one way to get one."""
