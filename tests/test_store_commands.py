"""`seal sql`, `seal top` and `seal show` as a person meets them."""

import csv
import io
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from store_cases import write_tree

from seal.cli import main
from seal.store.schemas import OF_ROUND, OF_START, OF_TRAINING, TABLES
from seal.workspace.derived_views import DERIVED
from seal.workspace.views import missing_tables

ROOT = Path(__file__).parents[1]
PARAMS = (ROOT / "params.yaml").read_text()


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = write_tree(tmp_path_factory.mktemp("tree"))
    (root / "params.yaml").write_text(PARAMS)
    return root


@pytest.fixture
def seal(tree, capsys):
    def call(*words: str) -> tuple[int, str, str]:
        code = main([*words, "--root", str(tree)])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_a_plain_table_is_aligned_and_counted(seal):
    code, out, _ = seal("sql", "SELECT round, depth, count(*) AS n FROM outcomes GROUP BY ALL ORDER BY ALL")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].split() == ["round", "depth", "n"]
    assert [line.split()[:2] for line in lines[2:5]] == [["r0", "0"], ["r1", "1"], ["r2", "2"]]
    assert lines[5] == "(3 rows)"


def test_rows_beyond_the_limit_are_not_even_computed(seal):
    _, out, _ = seal("sql", "FROM outcomes", "--limit", "2")
    assert "(the first 2 rows; all: --limit 0)" in out
    assert "first 2 rows" in seal("sql", "FROM range(100000000000)", "--limit", "2")[1]
    assert len(seal("sql", "FROM outcomes", "--limit", "0")[1].splitlines()) == 303


def test_formats_say_the_same(seal, tmp_path):
    sql = "SELECT task_id, toolset, 1 AS one, 2 AS one FROM tasks ORDER BY ALL LIMIT 3"
    rows = json.loads(seal("sql", sql.replace(", 1 AS one, 2 AS one", ""), "--format", "json")[1])
    found = list(csv.reader(io.StringIO(seal("sql", sql, "--format", "csv")[1])))
    assert found[0] == ["task_id", "toolset", "one", "one"]
    assert [[row["task_id"], row["toolset"], "1", "2"] for row in rows] == [
        [row[0], json.loads(row[1]), *row[2:]] for row in found[1:]
    ]
    assert seal("sql", "FROM tasks", "--format", "parquet", "--output", str(tmp_path / "t.parquet"))[:2] == (0, "")
    assert pq.read_table(tmp_path / "t.parquet").num_rows == 84
    assert seal("sql", "SELECT 1 AS a", "--format", "csv", "--output", str(tmp_path / "a.csv"))[0] == 0
    assert (tmp_path / "a.csv").read_text() == "a\n1\n"


def test_columns_of_one_name_are_no_json_and_lose_nothing(seal, tmp_path):
    query, out = "SELECT 'a' AS x, 'b' AS x, 1 AS y", tmp_path / "a.json"
    for words in (("--format", "json"), ("--output", str(out))):
        code, said, err = seal("sql", query, *words)
        assert (code, said) == (2, "") and err.count("error: ") == 1 and "two columns x" in err and " AS " in err
    assert not out.exists()
    assert seal("sql", query, "--format", "csv")[1] == "x,x,y\na,b,1\n"
    assert json.loads(seal("sql", "SELECT 1 AS x, 2 AS X", "--format", "json")[1]) == [{"x": 1, "X": 2}]


def test_wrong_sql_is_a_usage_error_with_the_reason(seal):
    code, out, err = seal("sql", "SELECT nothing FROM outcomes")
    assert (code, out) == (2, "")
    assert "nothing" in err
    assert seal("sql", "SELECT 1", "--format", "parquet")[0] == 2


def test_a_plan_is_shown_as_it_is(seal):
    assert "─" in seal("sql", "EXPLAIN FROM outcomes")[1]
    assert "─" in seal("sql", "FROM outcomes", "--explain")[1]
    assert seal("sql", "FROM outcomes", "--explain", "--format", "csv")[0] == 2


def test_a_limit_holds_for_every_format(seal):
    assert len(seal("sql", "FROM range(100000000000)", "--limit", "2", "--format", "csv")[1].splitlines()) == 3
    assert len(json.loads(seal("sql", "FROM outcomes", "--format", "json")[1])) > 50


def test_top_counts_root_failures_against_the_parent(seal):
    code, out, _ = seal("top", "r1")
    assert code == 0
    assert out.startswith("r1, evaluate, interface off")
    assert "change against r0" in out
    lines = [line.split() for line in out.splitlines()[5:-2]]
    assert len(lines) == 10
    counts = [int(line[5]) + int(line[6]) for line in lines]
    assert counts == sorted(counts, reverse=True)
    assert out.rstrip().endswith(f"seal show {lines[0][-1]}")
    total = "SELECT count(*) AS n FROM failures WHERE round = 'r1' AND phase = 'evaluate' AND interface_mode = 'off'"
    everything = seal("top", "r1", "-n", "1000")[1].splitlines()[5:-2]
    assert (
        sum(int(line.split()[5]) for line in everything)
        == json.loads(seal("sql", total, "--format", "json")[1])[0]["n"]
    )


def test_top_of_an_unplayed_round_names_those_that_are(seal):
    code, _, err = seal("top", "r7")
    assert code == 5
    assert "r0, r1, r2" in err


@pytest.fixture
def clone(tmp_path):
    """What git has of a workspace: parameters and scores, nothing that was played."""
    for name in ("r0", "r1"):
        (tmp_path / "data" / "rounds" / name).mkdir(parents=True)
        shutil.copy(ROOT / "data" / "rounds" / name / "metrics.json", tmp_path / "data" / "rounds" / name)
    (tmp_path / "params.yaml").write_text(PARAMS)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [("top",), ("top", "r1"), ("top", "--phase", "collect"), ("show", "0"), ("interface", "show", "r1"),
     ("interface", "diff", "r0", "r1"), ("export", "otel"), ("export", "otel", "r1"),
     ("export", "preferences", "r1", "--out", "p.jsonl")],
)  # fmt: skip
def test_where_nothing_was_played_it_is_said_of_something(clone, capsys, monkeypatch, words):
    monkeypatch.chdir(clone)
    assert main([*words]) in (3, 5)
    said = capsys.readouterr()
    thing, value = said.err.splitlines()[0].removeprefix("error: ").split(": ", 1)
    assert said.out == "" and said.err.count("\n") == 2 and thing and value.strip(" .") and "seal " in said.err


@pytest.mark.parametrize("name", [*TABLES, *DERIVED])
def test_an_empty_table_that_nothing_has_written_is_told(clone, seal, capsys, name):
    sql = ("sql", f"SELECT * FROM {name} LIMIT 1")
    assert seal(*sql)[2] == ""  # where all is there
    assert main([*sql, "--root", str(clone)]) == 0
    said = capsys.readouterr()
    assert said.out.endswith("(0 rows)\n") and said.err.count("\n") == 1
    assert said.err.startswith("note: ") and "seal run" in said.err


@pytest.mark.parametrize(
    ("sql", "note"),
    [("SELECT count(*) FROM failures", "note: "), ("PIVOT outcomes ON phase", "note: "),
     ("WITH a AS (FROM steps) SELECT 1 FROM a", "note: "), ("FROM rounds", ""), ("SHOW TABLES", ""),
     ("SELECT 'steps'", "")],
)  # fmt: skip
def test_a_question_is_told_what_it_reads_and_no_other(clone, capsys, sql, note):
    assert main(["sql", sql, "--format", "csv", "--root", str(clone)]) == 0
    assert capsys.readouterr().err[:6] == note


def test_show_prints_an_episode(seal):
    sql = "SELECT rollout_id FROM cascades WHERE phase = 'collect' AND consequences > 0 ORDER BY ALL LIMIT 1"
    id_ = json.loads(seal("sql", sql, "--format", "json")[1])[0]["rollout_id"]
    code, out, _ = seal("show", id_[:10])
    assert code == 0
    for words in (
        f"rollout    {id_}",
        "task ",
        "tool ",
        "--- turn 0 ---",
        "user ",
        "policy ",
        "call ",
        "verdict ",
        "label ",
    ):
        assert words in out
    assert "(a consequence)" in out


def test_show_marks_what_the_interface_wrote(seal):
    sql = """
        SELECT rollout_id FROM (SELECT rollout_id, unnest(results) AS r FROM steps WHERE phase = 'train')
        WHERE r.shown <> r.raw ORDER BY rollout_id LIMIT 1
    """
    id_ = json.loads(seal("sql", sql, "--format", "json")[1])[0]["rollout_id"]
    out = seal("show", id_)[1]
    assert any("ERROR" in line and "«" in line for line in out.splitlines())


def test_show_of_unclear_ids_says_so(seal):
    code, _, err = seal("show", "")
    assert code == 3
    assert "several begin so" in err
    code, _, err = seal("show", "zz")
    assert code == 3
    assert "no round has it" in err


def test_an_episode_whose_task_is_gone_says_so(seal, tree, tmp_path):
    path = tree / "data" / "tasks" / "shop.parquet"
    id_ = pq.read_table(tree / "data/rounds/r1/evaluate/trajectories.parquet")["rollout_id"][0].as_py()
    assert "data/tasks" not in seal("show", id_)[1]
    path.rename(tmp_path / "kept")
    try:
        code, out, _ = seal("show", id_)
    finally:
        (tmp_path / "kept").rename(path)
    assert code == 0 and "data/tasks" in out


def test_an_episode_whose_steps_are_gone_is_no_empty_episode(tmp_path, capsys):
    root = write_tree(tmp_path)
    (root / "params.yaml").write_text(PARAMS)
    found = pq.read_table(next(root.glob("data/rounds/r1/collect/trajectories.parquet"))).to_pylist()
    next(root.glob("data/rounds/r1/collect/steps.parquet")).unlink()
    assert main(["show", found[0]["rollout_id"], "--root", str(root)]) == 3
    assert "steps.parquet" in capsys.readouterr().err


LOST = [
    *(f"r1/{stage}/{name}" for stage, names in OF_ROUND.items() for name in names),
    *(f"r0/evaluate/{name}" for name in OF_START["evaluate"]),
]


@pytest.mark.parametrize("lost", LOST)
def test_a_missing_table_beside_others_is_one_error_and_not_fewer_rows(seal, tree, tmp_path, lost):
    path, other = tree / "data" / "rounds" / f"{lost}.parquet", "outcomes" if "/steps" in lost else "stored.steps"
    path.rename(tmp_path / "kept")
    try:
        code, out, err = seal("sql", f"SELECT count(*) FROM {path.stem}")
        assert seal("sql", f"SELECT count(*) FROM {other}")[0] == 0
    finally:
        (tmp_path / "kept").rename(path)
    assert (code, out) == (3, "") and err.count("error: ") == 1 and str(path) in err


WHOLE = {  # folders that are as their stage left them, or that are not here
    "training that played nothing": [f"r1/train/{name}.parquet" for name in OF_TRAINING],
    "a round's evaluation alone": [f"r1/{stage}" for stage in OF_ROUND if stage != "evaluate"],
    "a profile and a replay buffer alone": [
        *("r1/collect", "r1/verify", "r1/interface", "r1/evaluate", "r1/diagnose/diagnoses.parquet"),
        *(f"r1/train/{name}.parquet" for name in OF_ROUND["train"] if name != "replay"),
    ],
    "a round that is not evaluated": ["r1/evaluate"],
}


def test_a_whole_tree_lacks_nothing(tree):
    assert list(missing_tables(tree / "data")) == []


@pytest.mark.parametrize("gone", WHOLE)
def test_what_a_stage_did_not_write_or_is_not_here_is_not_missing(tree, tmp_path, gone):
    shutil.copytree(tree / "data", tmp_path / "data")
    for path in (tmp_path / "data" / "rounds" / name for name in WHOLE[gone]):
        path.unlink() if path.suffix else shutil.rmtree(path)
    assert list(missing_tables(tmp_path / "data")) == []


def _broken(tmp_path, capsys, change):
    """The code and the error of a question to a workspace that `change` broke, given its verdicts file."""
    root = write_tree(tmp_path)
    (root / "params.yaml").write_text(PARAMS)
    change(root / "data" / "rounds" / "r1" / "verify" / "verdicts.parquet")
    assert main(["sql", "SELECT count(*) FROM outcomes", "--root", str(root)]) == 0
    assert capsys.readouterr().err == ""
    return main(["sql", "SELECT count(*) FROM verdicts", "--root", str(root)]), capsys.readouterr().err


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b"PAR1 and no more"),
        lambda path: pq.write_table(pa.table({"a": [1]}), path),
        lambda path: pq.write_table(pq.read_table(path).drop(["turn"]), path),
        lambda path: pq.write_table(pq.read_table(path).cast(_texts(pq.read_schema(path))), path),
    ],
)
def test_a_broken_table_is_one_error_that_names_the_file(tmp_path, capsys, change):
    code, err = _broken(tmp_path, capsys, change)
    assert code == 3 and err.count("error:") == 1 and "r1/verify/verdicts.parquet" in err


def _texts(schema):
    return pa.schema([field.with_type(pa.string()) if field.name == "turn" else field for field in schema])


@pytest.mark.parametrize(
    "words", [("top", "-n", "-3"), ("sql", "SELECT 1", "--output", "."), ("sql", "SELECT 1", "--output", "no/x.csv")]
)
def test_a_wrong_option_is_one_error(seal, words):
    code, _, err = seal(*words)
    assert code == 2 and err.startswith("error:")


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_a_file_is_written_as_it_is_named_and_whole(tmp_path, suffix):
    from seal.commands.output import form_of, write_answer

    answer, path = pa.table({"n": list(range(120))}), tmp_path / f"all.{suffix}"
    write_answer(answer, form_of(None, path), path, 50)
    read = {
        "csv": pyarrow.csv.read_csv,
        "parquet": pq.read_table,
        "json": lambda path: pa.Table.from_pylist(json.loads(path.read_text())),
    }
    assert read[suffix](path).to_pylist() == answer.to_pylist()
    assert form_of("table", path) == "table" and form_of(None, tmp_path / "all.txt") == "table"
    write_answer(answer, "table", path, 50)
    assert len(path.read_text().splitlines()) > 120


def test_a_question_that_is_interrupted_says_so(tree):
    query = "SELECT sum(sqrt(range)) FROM range(1000000000000)"
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); from seal.cli import main; "
    words = [sys.executable, "-c", code + "print(flush=True); sys.exit(main())", "sql", query, "--root", str(tree)]
    asked = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        asked.stdout.readline()
        time.sleep(2)
        asked.send_signal(signal.SIGINT)
        assert (asked.communicate(timeout=60)[1], asked.returncode) == ("interrupted\n", 130)
    finally:
        asked.kill()
