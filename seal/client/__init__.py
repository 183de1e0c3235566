"""The one client of served models and services.

`server` asks over HTTP, with bounded tries, bytes and seconds; `chat` reads chat completions and keeps answers on disk.
"""
