"""Tool schemas and docs, calls as text and back, and what results and descriptions say in prose.

Nothing here executes anything.
"""
