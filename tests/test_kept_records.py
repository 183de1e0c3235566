"""What seal keeps under .seal and reads back: a damaged file is one error that names it and says to remove it."""

import re
import shutil

import pytest
from test_evaluate_experiment import PARAMS, _args

from seal.cli import main
from seal.client.chat import cached
from seal.commands import experiment as command
from seal.core.errors import ArtifactError
from seal.env.tau2.endpoint import Endpoint
from seal.policy.endpoint import EndpointPolicy
from seal.settings.policies import EndpointParams
from seal.store.files import read_record

DAMAGED = {
    "nothing": "",
    "half": '{"answer": {"te',
    "no text": "\x00\x01",
    "list": "[]",
    "number": "3",
    "no key": "{}",
    "another kind": '{"answer": 3, "message": 3, "digest": 3, "metrics": [], "outcomes": 3, "items": 3, "kind": "no"}',
    "entries of another kind": '{"answer": {"text": 3}, "message": {}, "digest": "d", "outcomes": [[1]], "items": [3]}',
}
damaged = pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED)


def of_completions(cache):
    return cached(cache, {"a": 1}, str, lambda: "said")


def of_policy(cache):
    return EndpointPolicy(EndpointParams(url="http://127.0.0.1:9/v1", model="m", cache=str(cache)))._answer({"a": 1})


def of_user(cache):
    return Endpoint("http://127.0.0.1:9/v1", "m", cache).message({"a": 1})


@damaged
@pytest.mark.parametrize("ask", [of_completions, of_policy, of_user])
def test_a_damaged_answer_is_not_taken_for_one(tmp_path, monkeypatch, ask, text):
    monkeypatch.setattr(EndpointPolicy, "_ask", lambda *_: {"text": "said", "finish": "stop"})
    monkeypatch.setattr(Endpoint, "_ask", lambda *_: {"role": "assistant", "content": "said"})
    assert ask(tmp_path) == ask(tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_text(text)
    with pytest.raises(ArtifactError, match=f"(?s){re.escape(str(path))}.*rm "):
        ask(tmp_path)
    path.unlink()  # as it says
    assert ask(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    root = tmp_path_factory.mktemp("finished")
    (root / "params.yaml").write_text(PARAMS)
    command.run(_args(root, "transfer", "--seeds", "1", "--rounds", "1", "--arms", "seal", "--to", "compliance"))
    return root


MORE = ("rises", "--seeds", "1", "--rounds", "2")
ELSEWHERE = ("transfer", "--seeds", "1", "--rounds", "1", "--arms", "seal", "--to", "compliance")
# file -> the command that reads it, and what must be gone for that
READ = {
    "seal/s3/r0.json": (MORE, ""),
    "seal/s3/r1.json": (MORE, ""),
    "seal/s3/state/line.json": (MORE, ""),
    "seal/s3/state/interface.json": (MORE, ""),
    "seal/s3/to-compliance.r1.json": (ELSEWHERE, ""),
    "starts/*/start/metrics.json": (MORE, "seal"),
    "starts/*/policy/policy.json": (MORE, "seal"),
}


@damaged
@pytest.mark.parametrize("name", READ)
def test_a_damaged_record_of_an_experiment_is_one_error(finished, tmp_path, capsys, name, text):
    shutil.copytree(finished, tmp_path / "w")
    out, (words, gone) = tmp_path / "w" / ".seal" / "experiments" / "r0", READ[name]
    if gone:
        shutil.rmtree(out / gone)
    (path,) = out.glob(name)
    path.write_text(text)
    line = ["experiment", *words, "--set", "train.algorithm=none", "--root", str(tmp_path / "w")]
    assert main(line) == 3
    said = capsys.readouterr().err
    assert said.count("error: ") == 1 and any(
        f"rm {r}{place}\n" in said for place in (path, *path.parents) for r in ("", "-r ")
    )
    assert f"{path.parent}" in said


@pytest.mark.parametrize("gone", ["r0.json", "r1.json", "state", "state/line.json"])
def test_what_was_removed_is_made_again_and_the_same(finished, tmp_path, capsys, gone):
    """As the error says. A record in the middle is not lost because a later round's policy is kept."""
    before, line = {}, ["experiment", *MORE, "--set", "train.algorithm=none", "--root"]
    for name in ("whole", "mended"):
        shutil.copytree(finished, tmp_path / name)
        assert main([*line, str(tmp_path / name)]) == 0
    folder = tmp_path / "mended" / ".seal" / "experiments" / "r0" / "seal" / "s3"
    before = {path.name: path.read_bytes() for path in folder.glob("r*.json")}
    (shutil.rmtree if (folder / gone).is_dir() else lambda path: path.unlink())(folder / gone)
    capsys.readouterr()
    assert main([*line, str(tmp_path / "mended")]) == 0
    assert {path.name: path.read_bytes() for path in folder.glob("r*.json")} == before
    assert "seal" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("shape", "text", "says"),
    [
        ({"a": int}, "[]", "it is no object"),
        ({"a": int}, '{"b": 1}', "it has no 'a'"),
        ({"a": {"b": str}}, '{"a": {"b": 1}}', "a.b is no str"),
        ({"a": [(str, int)]}, '{"a": [["x", 1], ["y"]]}', r"a\[1\] has 1 values, not 2"),
        ({"a": [int | float]}, '{"a": [1, "x"]}', r"a\[1\] is no"),
        (dict, '"x"', "it is no object"),
        (dict, "[" * 100_000, "recursion"),
    ],
)
def test_a_shape_says_what_is_not_like_it(tmp_path, shape, text, says):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(ArtifactError, match=says):
        read_record(tmp_path / "r.json", shape)


@pytest.mark.parametrize("damage", [b"", b"junk", b"PK\x03\x04"])
@pytest.mark.parametrize("name", ["state.pt", "step_0000.json"])
def test_the_state_of_an_interrupted_training_is_whole_or_one_error(tmp_path, name, damage):
    torch = pytest.importorskip("torch")
    from seal.train import resume

    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    resume.save(tmp_path, 0, {"judged": []}, model, optimizer)
    assert resume.load(tmp_path, {"judged": list})[1] == [{"judged": []}]
    (tmp_path / name).write_bytes(damage)
    with pytest.raises(ArtifactError, match=f"(?s){name}.*rm -r"):
        resume.load(tmp_path, {"judged": list})
