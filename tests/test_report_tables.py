"""The results table: one line a round, lines of descent together, differences in points."""

import json
import shutil

import pytest

from seal.core.errors import ArtifactError
from seal.experiment.results import ESTIMATES
from seal.interface.state import InterfaceState, Item
from seal.report.experiments import experiment_table, label_table
from seal.report.rounds import diff, lineages, load_rounds
from seal.report.tables import compact, label_movers, results_table, text_table


def estimate(mean, half=0.1, n=50):
    return {"mean": mean, "low": mean - half, "high": mean + half, "n": n, "clusters": n}


def write_round(root, id_, parent="", depth=0, strict=0.2, labels=None, items=(), **more):
    """A round of a workspace as far as the table reads it."""
    folder = root / "data" / "rounds" / id_
    folder.mkdir(parents=True)
    (folder / "interface.json").write_text(InterfaceState(tuple(items)).to_json())
    found = {
        "round": id_,
        "parent": parent,
        "depth": depth,
        "env": "shop",
        "strict": estimate(strict),
        "dev": estimate(strict + 0.01),
        "labels": labels or {},
        "interface": {"active": len(items), "added": len(items), "retired": 0, "rolled_back": 0},
        "total": {"rollouts": 1408 * depth, "tokens": 123456 * depth, "updates": 20 * depth},
        **more,
    }
    (folder / "metrics.json").write_text(json.dumps(found))


@pytest.fixture
def tree(tmp_path):
    item = Item("enum", "refund.reason", "docs", "late K7", "argument_mismatch", "r1", support=5)
    write_round(tmp_path, "r0", labels={"argument_mismatch": 0.4, "state_mismatch": 0.1})
    gain = {"gain": {"parent": estimate(0.15, 0.05)}, "on": estimate(0.6), "mismatch": estimate(0.25)}
    labels = {"argument_mismatch": 0.25, "state_mismatch": 0.102, "recovery_failure": 0.02}
    write_round(tmp_path, "r1", "r0", 1, 0.35, labels, [item], **gain)
    write_round(tmp_path, "r2", "r1", 2, 0.5, {}, [item], gain={"parent": estimate(0.15)})
    write_round(tmp_path, "b2", "r1", 2, 0.4, {}, [], gain={"parent": estimate(0.05)})
    return tmp_path


def test_the_table_says_what_happened(tree):
    lines = results_table(tree).splitlines()
    assert lines[0].split()[:5] == ["round", "parent", "strict", "95%", "gain"]
    assert [line.split()[0] for line in lines[2:6]] == ["r0", "r1", "b2", "r2"]
    start, first = lines[2], lines[3]
    assert "20.0" in start and "[10.0, 30.0]" in start and "start" in start
    for part in ("35.0", "+15.0", "[+10.0, +20.0]", "36.0", "60.0", "+25.0", "1 (+1 -0)", "1,408", "123.5k"):
        assert part in first, part
    assert "argument_mismatch -15.0, recovery_failure +2.0" in first and "state_mismatch" not in first


def test_rounds_come_parents_first_and_lines_of_descent_are_found(tree):
    rounds = load_rounds(tree)
    assert [r.id for r in rounds] == ["r0", "r1", "b2", "r2"]
    assert [[r.id for r in line] for line in lineages(rounds)] == [["r0", "r1", "b2"], ["r0", "r1", "r2"]]
    added, removed, kept = diff(rounds[0].interface, rounds[1].interface)
    assert ([i.target for i in added], removed, kept) == (["refund.reason"], [], 0)


def test_a_round_of_which_git_brought_the_metrics_alone_is_in_the_table(tree):
    before = results_table(tree)
    last = tree / "data" / "rounds" / [line.split()[0] for line in before.splitlines()[2:] if line[:1] == "r"][-1]
    for path in last.iterdir():
        if path.name != "metrics.json":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert results_table(tree) == before


def test_nothing_there_and_broken_metrics_say_what_to_do(tmp_path):
    with pytest.raises(ArtifactError, match="seal run"):
        load_rounds(tmp_path)
    write_round(tmp_path, "r0")
    (tmp_path / "data/rounds/r0/metrics.json").write_text('{"round": "r0"}')
    with pytest.raises(ArtifactError, match="metrics"):
        load_rounds(tmp_path)


def test_small_things():
    assert [compact(n) for n in (0, 999, 1500, 2_340_000)] == ["0", "999", "1.5k", "2.3M"]
    assert label_movers({"a": 0.1, "b": 0.2}, {"a": 0.3, "b": 0.2, "c": 0.05}, 5) == [
        ("a", pytest.approx(-0.2)),
        ("c", pytest.approx(-0.05)),
    ]
    assert text_table(("a", "bb"), [("x", "1"), ("yy", "22")]).splitlines() == ["a   bb", "------", "x    1", "yy  22"]


def test_an_experiment_as_a_table():
    none = {f"{name}{end}": None for name in ESTIMATES for end in ("", "_low", "_high")}
    cost = {"rollouts": 0.0, "tokens": 0.0, "updates": 0.0}
    start = {
        "arm": "vanilla",
        "depth": 0,
        "seeds": 7,
        **none,
        **cost,
        "strict": 0.2,
        "strict_low": 0.1,
        "strict_high": 0.3,
    }
    gain = {"gain": 0.1, "gain_low": 0.05, "gain_high": 0.15, "behind": 0.12, "behind_low": 0.01, "behind_high": 0.2}
    after = {**start, "depth": 1, "strict": 0.3, **gain, "rollouts": 1408.0, "tokens": 98765.0, "updates": 20.0}
    ours = {
        **after,
        "arm": "seal",
        **dict.fromkeys(("behind", "behind_low", "behind_high")),  # it is the last
        "margin": 0.12,
        "margin_low": 0.01,
        "margin_high": 0.2,
        "strict": 0.42,
    }
    turns = {"progress": 0.55, "progress_low": 0.5, "progress_high": 0.6}
    turns |= {"progress_margin": 0.03, "progress_margin_low": -0.01, "progress_margin_high": 0.07}
    lines = experiment_table([start, after, {**start, "arm": "seal"}, {**ours, **turns}]).splitlines()
    assert "20.0 30.0 " in lines[2] and "+10.0  [+5.0, +15.0]" in lines[2] and "+12.0  [+1.0, +20.0]" in lines[2]
    assert "20.0 42.0 " in lines[3] and "98.8k" in lines[3] and lines[3].count("[+1.0, +20.0]") == 1
    assert "55.0  [50.0, 60.0]" in lines[8] and "+3.0  [-1.0, +7.0]" in lines[8] and lines[7].split()[0] == "vanilla"


def test_labels_of_an_experiment_are_means_over_seeds_or_one_seed_with_its_interval():
    def record(arm, seed, depth, **labels):
        ends = {label: [rate - 0.01, rate + 0.02] for label, rate in labels.items()}
        return {"arm": arm, "seed": seed, "depth": depth, "metrics": {"labels": labels, "label_intervals": ends}}

    starts = [record(arm, 0, 0, wrong=0.3, missing=0.1) for arm in ("vanilla", "seal")]
    ends = [record("vanilla", 0, 1, wrong=0.2), record("seal", 0, 1, wrong=0.15, spurious=0.05)]
    lines = [line.split("  ") for line in label_table([*starts, *ends]).splitlines()]
    cells = {line[0]: [cell.strip() for cell in line[1:] if cell] for line in lines}
    assert cells["label"] == ["start", "vanilla", "seal"]
    assert cells["wrong"] == ["30.0 [29.0, 32.0]", "20.0 [19.0, 22.0]", "15.0 [14.0, 17.0]"]
    assert cells["missing"] == ["10.0 [9.0, 12.0]", "0.0", "0.0"]
    lines = label_table([*starts, *ends, record("seal", 1, 1, wrong=0.25)]).splitlines()
    assert lines[-3].split() == ["wrong", "30.0", "[29.0,", "32.0]", "20.0", "[19.0,", "22.0]", "20.0"]


def test_scores_without_bad_tasks_stand_below_the_table_only_where_there_are_such(tree):
    assert "known to be bad" not in results_table(tree)
    write_round(tree, "c2", "r1", 2, 0.4, clean=estimate(0.42, n=46))
    assert results_table(tree).splitlines()[-1].endswith("known to be bad: c2 42.0 [32.0, 52.0] of 46")
