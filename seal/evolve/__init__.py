"""How the interface changes: from a round's evidence (`evidence`) to candidate cues (`candidates`), past the leak guard
(`guard`), to what is added, kept and retired (`selection`, `uplift`), and what survives its trial on dev tasks
(`gate`). `next_interface` is all of it in one call."""

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = ["next_interface", "uplift"]
