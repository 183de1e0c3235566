"""`seal export preferences` on a round that nano played: rows that are the played tokens, and errors."""

import json

import pyarrow.parquet as pq
import pytest
from store_cases import write_tree

from seal.cli import main
from seal.core.errors import ArtifactError
from seal.core.labels import DEFAULT_PRIORITY
from seal.core.seeds import RoundKey
from seal.diagnose.judge import judge
from seal.env.shop import ShopEnv
from seal.interface.state import InterfaceState
from seal.rollout.collect import collect
from seal.settings.play import CollectParams
from seal.store.judged import write_judged

torch = pytest.importorskip("torch")
PARAMS = """run: {seed: 0}
envs:
  shop: {seed: 0, train: 8, dev: 1, test: 1}
starts:
  r0:
    env: shop
    recipe: 1
    policy: {kind: nano}
    evaluate: {split: test, tasks: 0, trials: 1, temperature: 0.0, measure_on: true, max_action_tokens: 9, context: 512}
defaults: {}
rounds: {}
"""


@pytest.mark.parametrize(("words", "told"), [((), "is diagnosed here"), (("r1",), "r1: not diagnosed here")])
def test_a_clone_without_data_says_how_to_get_it(tmp_path, capsys, words, told):
    """Nothing is written, and no errno is named."""
    from seal.settings.params import load_params
    from seal.workspace.params_file import add_round, resolve

    (tmp_path / "params.yaml").write_text(PARAMS)
    add_round(tmp_path / "params.yaml", "r1", resolve(load_params(tmp_path / "params.yaml"), "r0", {}))
    out = tmp_path / "p.jsonl"
    assert main(["export", "preferences", *words, "--out", str(out), "--root", str(tmp_path)]) == 3
    said = capsys.readouterr().err
    assert told in said and "seal run" in said and "dvc pull" in said and "rrno" not in said and not out.exists()


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """r0 -> r1 -> r2, played by scripted policies, with nano's tokenizer: no pairs, but all tables."""
    from seal.policy.nano import reader_policy
    from seal.settings.params import load_params
    from seal.workspace.params_file import add_round, resolve

    root = write_tree(tmp_path_factory.mktemp("tree"))
    (root / "params.yaml").write_text(PARAMS)
    for name, parent in (("r1", "r0"), ("r2", "r1")):
        add_round(root / "params.yaml", name, resolve(load_params(root / "params.yaml"), parent, {}, name=name))
        reader_policy().save(root / "data" / "rounds" / parent / "policy")
    return root


LOST = [
    *(f"collect/{name}" for name in ("trajectories", "steps", "tokens")),
    *("verify/verdicts", "verify/outcomes", "diagnose/diagnoses"),
    *(f"train/{name}" for name in ("trajectories", "steps", "tokens", "verdicts", "outcomes", "diagnoses")),
]


@pytest.mark.parametrize("words", [(), ("r1",)])
@pytest.mark.parametrize("lost", LOST)
def test_a_missing_table_is_one_error_and_not_fewer_pairs(tree, tmp_path, capsys, lost, words):
    path, out = tree / "data" / "rounds" / "r1" / f"{lost}.parquet", tmp_path / "p.jsonl"
    path.rename(tmp_path / "kept")
    try:
        code = main(["export", "preferences", *words, "--out", str(out), "--root", str(tree)])
    finally:
        (tmp_path / "kept").rename(path)
    said = capsys.readouterr().err
    assert code == 3 and said.count("error: ") == 1 and str(path) in said and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("lost", LOST)
def test_a_table_without_a_row_is_one_error_and_not_fewer_pairs(tree, tmp_path, capsys, lost):
    path, out = tree / "data" / "rounds" / "r1" / f"{lost}.parquet", tmp_path / "p.jsonl"
    whole, table = path.read_bytes(), pq.read_table(path)
    pq.write_table(table.slice(1), path)
    try:
        code = main(["export", "preferences", "r1", "--out", str(out), "--root", str(tree)])
    finally:
        path.write_bytes(whole)
    said = capsys.readouterr().err
    assert code == 3 and said.count("error: ") == 1 and path.stem in said and list(tmp_path.iterdir()) == []
    assert table["rollout_id"][0].as_py() in said
    assert path.stem != "tokens" or str(path) in said


def test_a_round_that_was_not_trained_is_told(tree, tmp_path, capsys):
    train, line = tree / "data" / "rounds" / "r1" / "train", ["export", "preferences", "--root", str(tree), "--out"]
    assert main([*line, str(tmp_path / "p.jsonl")]) == 0 and "r1" not in capsys.readouterr().err
    train.rename(train.with_name("gone"))
    code = main([*line, str(tmp_path / "p.jsonl")])
    train.with_name("gone").rename(train)
    assert code == 0 and "r1: its collected rollouts alone" in capsys.readouterr().err


@pytest.mark.parametrize("text", [None, "{", "[]", "{}", '"kind"'])
def test_a_policy_that_is_not_there_or_is_none_is_told_in_words(tmp_path, text):
    from seal.policy import load_policy

    if text is not None:
        (tmp_path / "policy.json").write_text(text)
    with pytest.raises(ArtifactError, match="dvc pull") as caught:
        load_policy(tmp_path)
    assert "Error(" not in str(caught.value)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    from seal.policy.nano import reader_policy
    from seal.workspace.params_file import add_round, resolve

    torch.set_num_threads(1)
    root = tmp_path_factory.mktemp("w")
    (root / "params.yaml").write_text(PARAMS)
    from seal.settings.params import load_params

    add_round(root / "params.yaml", "r1", resolve(load_params(root / "params.yaml"), "r0", {}))
    policy, env, rounds = reader_policy(), ShopEnv(train=8, dev=1, test=1), root / "data" / "rounds"
    policy.save(rounds / "r0" / "policy")
    params = CollectParams(tasks=8, group_size=8, evolved=0)
    judged = judge(env, collect(env, policy, InterfaceState(), params, RoundKey("r1", 1, 0)), DEFAULT_PRIORITY)
    for stage in ("collect", "verify", "diagnose"):
        (rounds / "r1" / stage).mkdir(parents=True)
        write_judged(rounds / "r1" / stage, judged, "r1", "collect", tasks=env.tasks())
    return root, judged, policy.tokenizer


@pytest.mark.slow
@pytest.mark.parametrize("until", ["turn", "action"])
def test_rows_are_the_played_tokens_up_to_the_diagnosed_turn(workspace, until, tmp_path, capsys):
    root, judged, tokenizer = workspace
    out = tmp_path / "preferences.jsonl"
    assert main(["export", "preferences", "--out", str(out), "--root", str(root), "--until", until]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows and f"{len(rows)} pairs" in capsys.readouterr().out
    by_id = {j.rollout.rollout_id: j for j in judged}
    for row in rows:
        chosen, rejected = by_id[row["chosen_id"]], by_id[row["rejected_id"]]
        assert row["round"] == "r1" and chosen.rollout.task_id == rejected.rollout.task_id == row["task_id"]
        assert chosen.passed[row["turn"]] and not rejected.passed[row["turn"]]
        assert row["label"] == str(rejected.primary(row["turn"]).label)
        played = rejected.rollout.tokens.prompt_ids + rejected.rollout.tokens.completion_ids
        ids = tokenizer(row["prompt"] + row["rejected"])["input_ids"]
        assert tuple(ids) == played[: len(ids)]
        assert (
            row["chosen"] != row["rejected"]
            and tokenizer(row["prompt"])["input_ids"] == ids[: len(ids) - len(tokenizer(row["rejected"])["input_ids"])]
        )
        if not row["grafted"]:
            whole = chosen.rollout.tokens.prompt_ids + chosen.rollout.tokens.completion_ids
            ids = tokenizer(row["prompt"] + row["chosen"])["input_ids"]
            assert tuple(ids) == whole[: len(ids)]
    assert any(not row["grafted"] for row in rows)


@pytest.mark.slow
def test_a_round_named_twice_is_paired_once(workspace, tmp_path):
    root, _, _ = workspace
    for out, names in (("once", ["r1"]), ("twice", ["r1", "r1"])):
        assert main(["export", "preferences", *names, "--out", str(tmp_path / out), "--root", str(root)]) == 0
    assert (tmp_path / "twice").read_text() == (tmp_path / "once").read_text() != ""


@pytest.mark.slow
def test_a_round_that_is_not_there_or_not_diagnosed_is_one_error(workspace, tmp_path, capsys):
    root, _, _ = workspace
    out = tmp_path / "p.jsonl"
    assert main(["export", "preferences", "r9", "--out", str(out), "--root", str(root)]) != 0
    assert "r9" in capsys.readouterr().err and not out.exists()
