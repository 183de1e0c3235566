"""Playing tasks: the episode state machine, its token bookkeeping, the batched engine, and the plan of who plays what."""
