"""The six phases of a round, each `phase(state, params, run) -> state`, and the round they make.

A stage of the pipeline reads a state from disk, calls one of them and writes what it added (seal.pipeline.codec); an
experiment calls them one after the other (`run_round`). Nothing else composes a round.
"""
