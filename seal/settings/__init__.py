"""Settings: params.yaml as typed, range-checked, immutable values, and the JSON Schema that editors read.

Each module answers one question: how tasks are played, how the interface evolves, how the policy trains, and so on;
`params` reads the whole file, `typed` says what is wrong with it in one clear error.
"""
