"""One thread of torch for all tests: tiny models are slower with more, and much slower beside another job."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
os.environ.setdefault("DO_NOT_TRACK", "1")

import pytest


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """The seconds that requests would have waited before they were sent again: no test sleeps for them."""
    waited = []
    monkeypatch.setattr("seal.client.server.pause", waited.append)
    return waited
