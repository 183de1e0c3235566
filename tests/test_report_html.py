"""The page: self-contained, escaped, equal for equal rounds, with every part that the tables can fill."""

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest
from evaluations import evaluated

from seal.cli import main
from seal.commands import report as command
from seal.core.errors import ArtifactError
from seal.core.labels import DEFAULT_PRIORITY
from seal.core.seeds import RoundKey
from seal.diagnose.judge import judge
from seal.diagnose.proof.score import Row, write_rows
from seal.env.shop import ShopEnv
from seal.evaluate.metrics import metrics, round_metrics
from seal.evaluate.suite import write_evaluation
from seal.evolve.baselines import static
from seal.experiment.results import record, write_results, write_transfer
from seal.experiment.summary import summarise
from seal.experiment.transfer import summarise_transfer
from seal.interface.state import InterfaceState, Item
from seal.policy.scripted import FaultyPolicy
from seal.report.experiments import curves, load_results, load_transfers, read_transfer, transfer_cells
from seal.report.html import page, write_report
from seal.rollout.collect import Groups, collect
from seal.settings.play import CollectParams, EvaluateParams
from seal.store.judged import write_judged
from seal.store.parquet import read_parquet, write_parquet
from seal.store.schemas import OF_ROUND
from seal.store.tables import (
    rows_of_tasks,
    write_table,
)

ROOT = Path(__file__).parents[1]
ENV = ShopEnv(train=6, dev=2, test=5)
EVIL = "<script>alert('x')</script>"
CUES = static(ENV.facts(sorted({tool for task in ENV.tasks() for tool in task.toolset}))).items[:12]


def _round(root, id_, parent, depth, rate, state, before=None):
    policy = FaultyPolicy(rate)
    evaluation = evaluated(ENV, policy, state, EvaluateParams(), id_)
    rows = evaluation.rows(id_)
    found = metrics(evaluation, ENV.tasks(), parent=before and before[0], start=before and before[1])
    spent = {"train": {"rollouts": 96, "tokens": 4000, "updates": 4}} if depth else {}
    old = before[2] if before else InterfaceState()
    whole = round_metrics(
        found, RoundKey(id_, depth, 0), parent, old, state, spent, before and before[3], env="shop", policy_hash=EVIL
    )
    folder = root / "data" / "rounds" / id_
    write_evaluation(folder / "evaluate", evaluation, id_, ENV.tasks())
    checked = {"round": id_, "dataset": "train/steps", "expectation": "unique", "columns": "", "rows": 9, "failing": 0}
    write_table(folder / "evaluate" / "validation.parquet", "validation", [{**checked, "success": True}])
    if depth:
        params = CollectParams(tasks=16, group_size=6, evolved=6, item_dropout=0.9)
        played = collect(ENV, policy, state, params, RoundKey(id_, depth, 0), Groups("train", 1))
        write_judged(folder / "train", judge(ENV, played, DEFAULT_PRIORITY), id_, "train", tasks=ENV.tasks())
        for name in ("weights", "replay"):
            write_table(folder / "train" / f"{name}.parquet", name, [])
    (folder / "interface.json").write_text(state.to_json())
    (folder / "metrics.json").write_text(json.dumps(whole))
    return rows, before[1] if before else rows, state, whole["total"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("tree")
    write_table(root / "data" / "tasks" / "shop.parquet", "tasks", rows_of_tasks(ENV.tasks()))
    (root / "params.yaml").write_text("run: {seed: 0}\n")
    evil = Item("purpose", EVIL, "hint", EVIL, EVIL, "r1", 3)
    start = _round(root, "r0", "", 0, 0.7, InterfaceState())
    first = _round(root, "r1", "r0", 1, 0.4, InterfaceState((*CUES[:8], evil)), start)
    _round(root, "r2", "r1", 2, 0.1, InterfaceState(CUES), first)
    _round(root, "b2", "r1", 2, 0.3, InterfaceState(CUES[:4]), first)
    return root


class Tags(HTMLParser):
    """Checks that tags nest, and gathers what the page asks for from elsewhere."""

    void = frozenset({"meta", "br", "hr", "img", "path", "rect", "use", "circle"})

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.fetched = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.fetched += [value for name, value in attrs if name in ("src", "href") and not value.startswith("#")]
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.void:
            assert self.open.pop() == tag


def test_the_page_is_whole_self_contained_and_escaped(tree):
    text, tags = page(tree), Tags()
    tags.feed(text)
    assert not tags.open and not tags.fetched
    assert "script" not in tags.seen and EVIL not in text
    assert "&lt;script&gt;" in text
    assert not re.search(r"url\((?!#)|@import|https?://(?!www\.w3\.org)", text)
    assert tags.seen.count("svg") == 4


def test_the_page_tells_the_story(tree):
    text = page(tree)
    for part in ("r0 &rarr; r1 &rarr; r2", "1 more in other branches", "Strict score by category", "Which cue helped"):
        assert part in text, part
    assert "Interface: 4 added, 1 removed, 8 kept" in text  # r2 after r1
    assert "as r0 and as r2 played it" in text and ">solved<" in text
    assert "r2: 1 of 1 hold (1 tables)" in text and "24 train" in text and "params.yaml sha256" in text
    assert re.search(r"expected: <code>\w+", text)
    assert re.search(r"argument_mismatch</td><td>[\d.]+%</td><td>\[[\d.]+, [\d.]+\]</td>", text)
    assert re.search(
        r"of \d+ evolved training rollouts repeat three words in a row of a cue that they had, 0 of 0 bare", text
    )
    assert str(tree) not in text


def test_the_proof_of_the_labels_is_a_picture_where_it_was_run(tree):
    assert "Injected faults" not in page(tree)
    path = tree / "results" / "inject.csv"
    write_rows(path, [Row("shop", "fault", "drop", "missing_tool_call", "missing_tool_call", 1234, 1234, 1234, 9, 0)])
    text = page(tree)
    path.unlink()
    assert "Injected faults" in text and "1,234 gold trajectories of shop" in text and 'aria-label="confusion"' in text


def _record(arm, seed, depth):
    metrics = {
        "strict": {"mean": 0.2 + 0.1 * depth},
        "labels": {"state_mismatch": 0.3, "argument_mismatch": 0.2 / (1 + depth)},
    }
    metrics["total"] = {"rollouts": 64 * depth, "tokens": 900 * depth, "updates": 8 * depth}
    outcomes = [
        ["test", "off", task.task_id, 0, i % 3 <= depth, 0.5]
        for i, task in enumerate(ENV.tasks())
        if task.split == "test"
    ]
    return {
        "arm": arm,
        "seed": seed,
        "depth": depth,
        **record("d", metrics, {"state_mismatch": 0.4} if depth else {}, outcomes),
    }


def test_experiments_are_tables_and_curves_where_results_lie(tree):
    assert "<h2>Experiments" not in page(tree)
    records = [_record(arm, seed, depth) for arm in (EVIL, "seal") for seed in (0, 1) for depth in (0, 1)]
    tasks = {task.task_id: task for task in ENV.tasks()}
    rows = summarise(records, {id_: task.scenario_id for id_, task in tasks.items()})
    write_results(tree / "results" / "margin" / "shop", rows, records, tasks)
    (found,) = load_results(tree)
    text, tags = page(tree), Tags()
    shutil.rmtree(tree / "results")
    tags.feed(text)
    assert found.name == "margin/shop" and [len(curve) for _, curve in curves(found.summary)] == [2, 2]
    assert found.rates["start"]["argument_mismatch"] == pytest.approx(0.2)
    assert found.rates["seal"]["argument_mismatch"] == pytest.approx(0.1)
    assert found.pulled == {EVIL: {"state_mismatch": 0.4}, "seal": {"state_mismatch": 0.4}}
    assert not tags.open and "script" not in tags.seen and tags.seen.count("svg") == 7
    assert 'aria-label="curves-margin-shop"' in text and "margin/shop" in text


def _transfer(tree):
    """A folder of transfer results; without a home's name, which no table holds."""
    task = next(task for task in ENV.tasks() if task.split == "test")
    found = [
        {"arm": arm, "seed": 0, "depth": depth, "to": to, "outcomes": [["test", "off", task.task_id, 0, passed, 0.5]]}
        for arm, passed in (("vanilla", False), ("seal", True))
        for depth in (0, 1)
        for to in ("", EVIL)
    ]
    scenarios = dict.fromkeys(("", EVIL), {task.task_id: task.scenario_id})
    folder = tree / "results" / "transfer" / "shop"
    write_transfer(folder, summarise_transfer(found, scenarios, "test"), found, scenarios)
    return folder


def test_transfer_is_a_table_where_its_results_lie(tree):
    _transfer(tree)
    ((name, rows),) = load_transfers(tree)
    text, tags = page(tree), Tags()
    shutil.rmtree(tree / "results")
    tags.feed(text)
    assert name == "transfer/shop" and [(row["to"], row["arm"]) for row in rows] == [
        (to, arm) for to in ("", EVIL) for arm in ("vanilla", "seal")
    ]
    assert not tags.open and "script" not in tags.seen
    section = text.partition("<h2>Experiments")[2].partition("<h2>")[0]
    assert "transfer/shop" in section and "trained at home" in section
    assert re.search(r'<td class="l">home</td><td class="l">seal</td><td>1</td><td>1</td><td>100.0</td>', section)
    assert "+100.0" in section  # the margin


@pytest.mark.parametrize("name", ["shop", "compliance"])
def test_what_was_kept_of_transfers_can_be_shown(name):
    assert len(transfer_cells(read_transfer(ROOT / "results" / "transfer" / name))[1]) == 4


def _lost(path):
    path.unlink()


def _emptied(path):
    path.write_bytes(b"")


def _others(path):
    write_parquet(path, pa.table({"a": [1]}))


def _without_strict(path):
    write_parquet(path, read_parquet(path).drop_columns(["strict"]))


def _as_text(path):
    table = read_parquet(path)
    write_parquet(path, table.cast(pa.schema([field.with_type(pa.string()) for field in table.schema])))


def _half(path):
    write_parquet(path, (table := read_parquet(path)).slice(table.num_rows // 2))


RESULTS = [
    *((name, change) for name in ("runs", "summary", "labels") for change in (_lost, _emptied, _others, _as_text)),
    *(("summary", _without_strict), ("runs", _half), ("summary", _half)),
]
PLAYED = [
    *(f"r1/{stage}/{name}.parquet" for stage in ("evaluate", "train") for name in OF_ROUND[stage]),
    *("r1/interface.json", "r1/metrics.json", "../tasks/shop.parquet"),
]


def _told(tree, path, change, capsys):
    """The report's error, after a change of a file, which is taken back."""
    before, capsys_before = path.read_bytes(), capsys.readouterr()
    assert capsys_before.err == ""
    change(path)
    try:
        assert main(["report", "--root", str(tree), "--out", str(tree / "page.html")]) == 3
    finally:
        path.write_bytes(before)
    assert not (tree / "page.html").exists()
    said = capsys.readouterr().err
    assert said.count("error: ") == 1
    return said


@pytest.mark.parametrize(("name", "change"), RESULTS)
def test_damaged_results_are_one_error_and_not_a_page_without_them(tree, capsys, name, change):
    records = [_record(arm, seed, depth) for arm in ("vanilla", "seal") for seed in (0, 1) for depth in (0, 1)]
    tasks, folder = {task.task_id: task for task in ENV.tasks()}, tree / "results" / "margin" / "shop"
    rows = summarise(records, {id_: task.scenario_id for id_, task in tasks.items()})
    write_results(folder, rows, records, tasks)
    try:
        said = _told(tree, folder / f"{name}.parquet", change, capsys)
    finally:
        shutil.rmtree(tree / "results")
    place = folder if change is _half else folder / f"{name}.parquet"
    assert f"{place}" in said and f"git checkout -- {place};" in said


@pytest.mark.parametrize("change", [_emptied, _others, _as_text, _without_strict])
def test_a_damaged_transfer_table_is_one_error_and_not_a_page_without_it(tree, capsys, change):
    path = _transfer(tree) / "transfer.parquet"
    try:
        said = _told(tree, path, change, capsys)
    finally:
        shutil.rmtree(tree / "results")
    assert f"git checkout -- {path};" in said


@pytest.mark.parametrize("name", PLAYED)
def test_what_lacks_of_a_round_is_one_error_and_not_a_page_without_it(tree, capsys, name):
    path = (tree / "data" / "rounds" / name).resolve()
    assert str(path) in _told(tree, path, _lost, capsys)


def test_equal_rounds_give_equal_bytes_and_the_command_prints_the_table(tree, tmp_path, capsys):
    first = write_report(tree, tmp_path / "one.html").read_bytes()
    assert write_report(tree, tmp_path / "two.html").read_bytes() == first
    import argparse

    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert command.run(parser.parse_args(["--root", str(tree), "--out", str(tmp_path / "three.html")])) == 0
    out = capsys.readouterr().out
    assert out.startswith("round  parent  strict") and "three.html" in out
    assert (tmp_path / "three.html").read_bytes() == first


def test_metrics_alone_are_enough_for_a_page(tree, tmp_path):
    for id_ in ("r0", "r1"):
        folder = tmp_path / "data" / "rounds" / id_
        folder.mkdir(parents=True)
        for name in ("metrics.json", "interface.json"):
            (folder / name).write_text((tree / "data" / "rounds" / id_ / name).read_text())
    text = page(tmp_path)
    assert "Score over training" in text and "Episodes" not in text and "Which cue helped" not in text
    with pytest.raises(ArtifactError):
        page(tmp_path / "nowhere")
