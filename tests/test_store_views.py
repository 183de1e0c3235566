"""Views over all rounds: lineage in every row, typed and empty without tables, closed to everything else."""

import shutil
from itertools import product

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from store_cases import LINEAGE, write_tree

from seal.core.errors import ArtifactError, ParamError
from seal.diagnose import primary_label
from seal.store.schemas import TABLES
from seal.workspace.derived_views import CERTAIN, DERIVED
from seal.workspace.views import ask, connect, open_root, rows


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return write_tree(tmp_path_factory.mktemp("it's a tree"))


@pytest.fixture
def con(tree):
    return connect(tree, LINEAGE)


def test_without_tables_every_view_is_empty_and_typed(tmp_path, con):
    bare = connect(tmp_path)
    for name in {*TABLES, *DERIVED}:
        empty = ask(bare, f"FROM {name}")
        assert empty.num_rows == 0
        assert empty.schema.names == ask(con, f"FROM {name} LIMIT 1").schema.names
        assert [str(kind) for kind in empty.schema.types] == [str(t) for t in ask(con, f"FROM {name}").schema.types]


def test_rows_carry_their_place_in_the_tree(con):
    for name in sorted({*TABLES, *DERIVED} - {"tasks", "validation"}):
        found = ask(con, f"SELECT DISTINCT round, parent, depth FROM {name}").to_pylist()
        assert {(row["round"], row["parent"] or "", row["depth"]) for row in found} <= set(LINEAGE), name
    lines = ask(con, "SELECT line FROM rounds ORDER BY depth").to_pylist()
    assert lines[2]["line"] == ["r0", "r1", "r2"]


def test_trajectories_know_their_outcome(con):
    (row,) = ask(
        con,
        "SELECT count(*) AS n, count(success) AS judged, count(DISTINCT rollout_id) AS ids, count(split) AS known "
        "FROM trajectories",
    ).to_pylist()
    assert row["n"] == row["judged"] == row["ids"] == row["known"]


def test_label_shift_is_what_the_score_of_labels_says(con):
    """Against the same figure counted by hand from the plain tables."""
    shift = ask(con, "FROM label_shift WHERE split = 'test'").to_pylist()
    assert {row["round"] for row in shift} == {"r0", "r1", "r2"}
    for row in shift:
        by_hand = f"""
            SELECT count(*) FILTER (d.primary AND root AND label = '{row["label"]}') AS n,
              count(DISTINCT (d.rollout_id, turn)) AS turns
            FROM diagnoses d JOIN evaluations e USING (round, rollout_id)
            WHERE round = '{row["round"]}' AND e.mode = 'off' AND e.split = 'test'
        """
        assert ask(con, by_hand).to_pylist() == [{"n": row["n"], "turns": row["turns"]}]
        assert row["rate"] == row["n"] / row["turns"]
    before = {row["label"]: row["rate"] for row in shift if row["round"] == "r0"}
    for row in (row for row in shift if row["round"] == "r1"):
        assert row["change"] == pytest.approx(row["rate"] - before[row["label"]])


def test_cue_effect_agrees_with_the_stored_uplift(con):
    joined = """
        SELECT c.uplift, i.uplift AS stored, c.n_without, i.n_without AS stored_without
        FROM cue_effect c JOIN interface_items i USING (round, item)
        WHERE c.phase = 'collect' AND c.uplift IS NOT NULL AND i.place = 'docs'
    """
    found = ask(con, joined).to_pylist()
    assert found
    for row in found:
        assert row["uplift"] == pytest.approx(row["stored"])
        assert row["n_without"] == row["stored_without"]


def test_who_copies_a_cue_is_counted_against_what_is_said_anyway(tmp_path, tree):
    """Two evolved rollouts and a bare one made to write a cue they had; one that had left it out does not count."""
    shutil.copytree(tree, tmp_path, dirs_exist_ok=True)
    folder = tmp_path / "data" / "rounds" / "r1"
    items = pq.read_table(folder / "interface" / "interface_items.parquet").to_pylist()
    item, words = next((i["item"], i["text"].split()) for i in items if len(i["text"].split()) > 2)
    played = pq.read_table(folder / "train" / "trajectories.parquet").to_pylist()
    evolved = [t["rollout_id"] for t in played if t["interface_mode"] != "off" and t["dropped_item"] != item]
    without = [t["rollout_id"] for t in played if t["dropped_item"] == item]
    bare = [t["rollout_id"] for t in played if t["interface_mode"] == "off"]
    assert without
    steps = pq.read_table(folder / "train" / "steps.parquet")
    copying = {
        evolved[0]: "as I read: " + " ".join(words[:3]).upper(),
        evolved[1]: ", ".join(words),
        without[0]: " ".join(words),
    }
    copying |= {bare[0]: "a " + " ".join(words[-3:]) + "?", evolved[2]: " ".join(words[:2]) + " then " + words[2]}
    texts = [copying.get(r["rollout_id"], "nothing of the kind") for r in steps.to_pylist()]
    place = steps.schema.get_field_index("text")
    pq.write_table(
        steps.set_column(place, steps.schema.field(place), pa.array(texts)), folder / "train" / "steps.parquet"
    )
    found = ask(connect(tmp_path, LINEAGE), "FROM copying WHERE round = 'r1' AND phase = 'train'").to_pylist()
    counts = {row["interface_mode"]: (row["copying"], row["rollouts"], row["share"]) for row in found}
    n = len(evolved) + len(without)
    assert counts == {"full": (2, n, 2 / n), "off": (1, len(bare), 1 / len(bare))}


def test_the_matrix_of_tools_counts_every_call(con):
    calls = "SELECT sum(len(calls)) + sum(len(errors)) AS n FROM steps"
    assert ask(con, "SELECT sum(n) AS n FROM tool_matrix").to_pylist() == ask(con, calls).to_pylist()


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELEC 1", "syntax error"),
        ("SELECT label FROM failure", "failure"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("", "0 statements"),
        ("SELECT count(*) FROM diagnoses WHERE primary", "double quotes"),
        ("COPY (SELECT 1) TO 'x.csv'", "COPY statement"),
        ("EXPLAIN ANALYZE COPY (SELECT 1) TO 'x.csv'", "EXPLAIN statement"),
        ("CREATE TABLE t (a INT)", "CREATE statement"),
        ("ATTACH 'x'", "sql: ATTACH statement"),
        ("INSERT INTO outcomes VALUES (1)", "sql: INSERT statement"),
        ("SET threads = 1", "SET statement"),
        ("SELECT * FROM read_text('/etc/hostname')", "Permission"),
        ("SELECT * FROM '../secret.parquet'", "Permission"),
        ("FROM diagnoses JOIN trajectories USING (round) WHERE 1 / 'a' = 1", "Conversion"),
    ],
)
def test_only_questions_about_the_tables_are_answered(con, sql, said):
    with pytest.raises((ParamError, ArtifactError)) as caught:
        ask(con, sql)
    assert said in str(caught.value)


def _is_a_folder(path):
    path.unlink()
    path.mkdir()


def _loses_its_pages(path):
    """The footer stays, so that the file opens."""
    whole = path.read_bytes()
    path.write_bytes(whole[:8] + b"\xff" * (len(whole) // 3) + whole[8 + len(whole) // 3 :])


DAMAGE = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "foreign": lambda path: pq.write_table(pa.table({"a": [1]}), path),
    "folder": _is_a_folder,
    "dangling": lambda path: path.unlink() or path.symlink_to("nowhere"),
    "pages": _loses_its_pages,
}


CASES = [
    ("verdicts", "missing"),
    *((name, "missing") for name in ("profile", "interface_items", "evaluations", "decisions", "weights", "replay")),
    *product(("verdicts", "tasks"), [name for name in DAMAGE if name != "missing"]),
]


@pytest.mark.parametrize(("name", "damage"), CASES)
def test_a_damaged_table_is_told_where_it_is_asked_and_there_alone(tmp_path, tree, con, name, damage):
    """Every view answers with all its rows, or names the file: none leaves the file out."""
    shutil.copytree(tree / "data", tmp_path / "data")
    path = next(tmp_path.glob(f"data/**/{name}.parquet" if name != "tasks" else "data/tasks/shop.parquet"))
    DAMAGE[damage](path)
    broken, told = connect(tmp_path, LINEAGE), set()
    for view in sorted({*TABLES, *DERIVED}):
        try:
            assert ask(broken, f"FROM {view}").num_rows == ask(con, f"FROM {view}").num_rows, view
        except ArtifactError as error:
            assert str(path) in str(error.value) and "dvc checkout" in error.remedy, view
            told.add(view)
    assert name in told and not told & {"rounds", "steps", "changes"}
    with pytest.raises(ArtifactError, match=str(path)):
        rows(broken, f"SELECT max(hash(t)) FROM {name} t")
    assert ask(broken, "SHOW TABLES").num_rows == ask(con, "SHOW TABLES").num_rows


@pytest.mark.parametrize("rounds", [["r1"], ["r0", "r1", "r2"]])
def test_tables_of_an_older_version_lack_a_column_and_answer(tmp_path, rounds):
    root = write_tree(tmp_path)
    new = [ask(connect(root, LINEAGE), f"FROM {name}").schema for name in ("verdicts", "failures", "recoveries")]
    for path in (p for name in rounds for p in root.glob(f"data/rounds/{name}/*/verdicts.parquet")):
        pq.write_table(pq.read_table(path).drop(["confidence"]), path)
    old = connect(root, LINEAGE)
    for name, schema in zip(("verdicts", "failures", "recoveries"), new, strict=True):
        assert dict(
            zip(*[ask(old, f"FROM {name}").schema.names, ask(old, f"FROM {name}").schema.types], strict=True)
        ) == dict(zip(schema.names, schema.types, strict=True))
    found = ask(old, "SELECT round, count(confidence) AS known, count(*) AS n FROM verdicts GROUP BY ALL").to_pylist()
    assert {row["round"]: row["known"] for row in found} == {
        row["round"]: 0 if row["round"] in rounds else row["n"] for row in found
    }


def test_the_matrix_of_parameters_is_what_the_labels_say(con):
    found = ask(con, "SELECT sum(n) AS n, min(calls) AS calls, bool_and(n >= tasks) AS more FROM parameter_matrix")
    by_hand = """
        SELECT count(DISTINCT (round, phase, rollout_id, turn, tool, parameter, label, detail)) AS n
        FROM diagnoses WHERE root AND tool <> '' AND parameter <> '' AND label NOT IN ('pass', 'correct_abstention')
    """
    assert found["n"][0].as_py() == ask(con, by_hand)["n"][0].as_py() > 0
    assert found["calls"][0].as_py() > 0 and found["more"][0].as_py()


def test_what_counts_as_sure_is_one_figure():
    assert CERTAIN == primary_label.CERTAIN


def test_labels_that_come_together_are_counted_both_ways(con):
    pairs = ask(con, "FROM co_occurrence WHERE phase = 'evaluate'").to_pylist()
    assert pairs
    mirror = {(row["round"], row["interface_mode"], row["other"], row["label"]): row for row in pairs}
    for row in pairs:
        other = mirror[row["round"], row["interface_mode"], row["label"], row["other"]]
        assert (row["n"], row["n_label"], row["lift"]) == (other["n"], other["n_other"], pytest.approx(other["lift"]))
        assert 0 < row["share"] <= 1


def test_positions_share_out_the_failures(con):
    same = "round = 'r1' AND phase = 'evaluate' AND interface_mode = 'off'"
    found = ask(con, f"SELECT sum(n) AS n, max(rate) AS most FROM positions WHERE {same}").to_pylist()[0]
    assert found["n"] == ask(con, f"SELECT count(*) AS n FROM failures WHERE {same}")["n"][0].as_py()
    assert 0 < found["most"] <= 1


def test_a_profile_is_followed_along_its_line(con):
    rows_ = ask(con, "FROM profile_trend WHERE round = 'r2'").to_pylist()
    assert len(rows_) == ask(con, "SELECT count(*) AS n FROM profile WHERE round = 'r2'")["n"][0].as_py()
    for row in rows_:
        assert len(row["rates"]) == 2  # r1 and r2: the start has no profile
        assert row["rates"][-1] == row["rate"]
        assert row["slope"] == pytest.approx(row["rates"][1] - row["rates"][0])
    assert ask(con, "SELECT count(slope) AS n FROM profile_trend WHERE round = 'r1'")["n"][0].as_py() == 0


def test_a_stage_that_still_writes_is_not_there(tmp_path, tree):
    folder = tmp_path / "data" / "rounds" / "r1" / "verify.partial"
    folder.mkdir(parents=True)
    (folder / "outcomes.parquet").write_bytes(b"half")
    assert ask(connect(tmp_path), "FROM outcomes").num_rows == 0


def test_a_workspace_without_data_says_what_to_do(tmp_path):
    with pytest.raises(ArtifactError, match="seal run"):
        open_root(tmp_path)


def test_values_go_in_by_place_or_name(con):
    by_place = rows(con, "SELECT count(*) AS n FROM evaluations WHERE round = ?", ["r1"])
    assert by_place == rows(con, "SELECT count(*) AS n FROM evaluations WHERE round = $it", {"it": "r1"})
