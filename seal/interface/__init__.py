"""The learning interface: what the policy is shown of its tools. Cues are data (`state`); how each is worded is in
`wording` (what the docs themselves tell in `doc_facts`, templates in `placeholders`); `view` is what one task shows of
them: in the docs and hints (`render`) and after an error (`feedback`). `export` gives them to other frameworks.
"""

# What other rooms may import; all else is the room's own (tests/test_imports.py).
__all__ = ["doc_facts", "export", "feedback", "placeholders", "render", "state", "view", "wording"]
