"""Proof of the diagnosis by fault injection: gold programs are broken in known ways, played and diagnosed, and what is
found is counted against what was broken (`seal diagnose --inject`)."""
