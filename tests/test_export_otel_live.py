"""`seal run --otel`: rollouts arrive while rounds run, and nothing about it reaches a round."""

import pytest
from otlp_receiver import attributes, receiver
from test_export_otel import free_port
from test_pipeline_rounds import PARAMS
from workspaces import seal, workspace

from seal.settings.params import load_yaml

pytestmark = pytest.mark.slow


@pytest.fixture
def tree(tmp_path, monkeypatch):
    for name in ("PREFECT_API_URL", "PREFECT_HOME"):
        monkeypatch.delenv(name, raising=False)
    folder = workspace(tmp_path / "w", PARAMS, plain=False)
    seal(folder, "round", "new")
    return folder


def test_live_and_without_a_receiver_the_rounds_are_the_same(tree, tmp_path):
    with receiver() as (url, kept):
        seal(tree, "run", "--otel", url)
        played = {(attributes(s)["seal.round"], attributes(s)["seal.phase"]) for s in kept.spans}
        assert played == {("r0", "evaluate"), ("r1", "collect"), ("r1", "evaluate")}
        order = [path for path, _, _ in kept.requests]
        assert order.index("/v1/metrics") < len(order) - 1  # not all at the end
        seal(tree, "run", "--otel", url)
        assert len(kept.requests) == len(order)  # what is done is not sent again
    other = workspace(tmp_path / "other", PARAMS, plain=False)
    seal(other, "round", "new")
    done = seal(other, "run", "--otel", f"http://127.0.0.1:{free_port()}")
    assert done.stderr.count("was not sent, the run goes on") == 3 and "Traceback" not in done.stderr
    assert load_yaml(other / "dvc.lock") == load_yaml(tree / "dvc.lock")
    assert (other / "params.yaml").read_text() == (tree / "params.yaml").read_text()
