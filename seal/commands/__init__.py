"""The verbs of the command line, one module each: add_arguments(parser) and run(args) -> exit code.

A verb looks at its options and places before any work, then calls the rooms below; `seal --help` imports none of them.
"""

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = ["custom_env", "round"]
