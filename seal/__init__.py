"""SEAL: self-improving tool-use agents, policy and learning interface evolving together.

Rooms import one way: core, store, tools, env, interface, policy, rollout, verify, diagnose, train, evaluate, report.
"""

__version__ = "0.1.0"
