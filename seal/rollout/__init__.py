"""Playing tasks: the episode state machine, its token ledger, the batched engine, and the plan of who plays what."""
