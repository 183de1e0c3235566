"""A workspace on disk: params.yaml, the tree of rounds, DVC and its lock, and SQL views over what was played."""
