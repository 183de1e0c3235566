"""The one client of served models and services.

`server` asks over HTTP, with bounded tries, bytes and seconds; `chat` reads chat completions and keeps answers on disk.
"""

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = ["chat", "server"]
