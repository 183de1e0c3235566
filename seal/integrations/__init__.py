"""Evolved docs and recovery feedback around the tools of other frameworks: plain Python, LangChain, AutoGen.

Each module needs its own framework and nothing is imported here. See docs/interface.md.
"""
