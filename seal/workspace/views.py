"""DuckDB over the tables of all rounds: in memory, nothing is written, made anew for each question.

The schema `stored` has the tables as they lie on disk. The views that people ask carry parent and depth of their round;
they are typed and empty where no table is. A table with a damaged or missing file cannot be asked, nor can a view that
reads it; all others answer. See docs/tables.md.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from seal.core.errors import PLAY, ArtifactError, ParamError, RoundError
from seal.settings.params import load_params
from seal.store.schemas import OF_ROUND, OF_START, OF_TRAINING, TABLES
from seal.workspace.derived_views import DERIVED
from seal.workspace.lineage import Lineage

if TYPE_CHECKING:
    import duckdb

Places = Iterable[tuple[str, str, int]]  # (round, its parent or "", depth), parents before children
MEND = "`dvc checkout`, or run its stage again"
_OF_COLLECTED = ("collect", "verify", "diagnose")  # folders about the same rollouts
_NOT_THERE = re.compile(r"Table with name no_(\w+) does not exist")  # what a view over a damaged table stands on


def open_root(root: Path) -> "duckdb.DuckDBPyConnection":
    """`connect` to a workspace, with the lineage of its params.yaml if it has one. ArtifactError without data."""
    if not (root / "data").is_dir():
        raise ArtifactError("tables", root / "data", "run `seal run` first, or name the workspace with --root")
    lineage: list[tuple[str, str, int]] = []
    if (root / "params.yaml").is_file():
        tree = Lineage(load_params(root / "params.yaml"))
        lineage = [(name, tree.parent(name), depth) for name, depth in tree.walk()]
    return connect(root, lineage)


def connect(root: Path, lineage: Places = ()) -> "duckdb.DuckDBPyConnection":
    """A connection with all views over root/data; closed to other files, to the network and to settings.

    A question that reads a table with a file that cannot be opened ends in an ArtifactError, however it reads it: the
    view has lost the table it stands on.
    """
    import duckdb

    con = duckdb.connect(config={"temp_directory": ""})
    data, lineage = (root / "data").absolute(), list(lineage)
    damage = {path.stem: ArtifactError("missing table", path, MEND) for path in missing_tables(data)}
    con.execute("CREATE SCHEMA stored")
    con.execute("CREATE TABLE stored.files (path VARCHAR)")
    con.execute("CREATE TABLE stored.without_files (name VARCHAR)")
    con.execute("CREATE TABLE stored.damaged (name VARCHAR, thing VARCHAR, value VARCHAR)")
    _add_rounds(con, lineage)
    for name in TABLES:
        files = table_files(data, name)
        try:
            _add_stored(con, name, [] if name in damage else files)
        except ArtifactError as error:
            damage[name] = error
            _add_stored(con, name, [])
        con.execute("INSERT INTO stored.files SELECT unnest(?)", [[str(path) for path in files]])
        con.execute("INSERT INTO stored.without_files SELECT ? WHERE ?", [name, not files])
        view = f"stored.plain_{name}" if name in DERIVED else name
        con.execute(f"CREATE VIEW {view} AS {_with_lineage(name, lineage)}")
    for name, sql in DERIVED.items():
        con.execute(f"CREATE VIEW {name} AS {sql}")
    for name, error in damage.items():
        con.execute(f"DROP TABLE stored.no_{name}")
        con.execute("INSERT INTO stored.damaged VALUES (?, ?, ?)", [name, error.thing, str(error.value)])
    con.execute(f"SET allowed_directories = [{quoted(str(data))}]")
    con.execute("SET enable_external_access = false")
    con.execute("SET lock_configuration = true")
    return con


def ask(con: "duckdb.DuckDBPyConnection", sql: str, limit: int = 0) -> pa.Table:
    """The answer to one statement that reads, or its first `limit` rows (0: all; no more than that is computed).

    Raises ParamError with DuckDB's message, ArtifactError when a table is broken.
    """
    import duckdb

    try:
        statements = con.extract_statements(sql)
        if len(statements) != 1:
            raise ParamError("sql", f"{len(statements)} statements", "ask one question at a time")
        if not _reads(statements[0]):
            remedy = "ask with SELECT: tables are written by stages alone"
            raise ParamError("sql", f"{statements[0].type.name} statement", remedy)
        with _damaged_files_named(con), ThreadPoolExecutor(1) as thread:
            answer = thread.submit(_table, con, sql, limit)
            try:
                return answer.result()
            except KeyboardInterrupt:
                con.interrupt()
                raise
    except duckdb.Error as error:
        remedy = "`seal sql 'SHOW TABLES'` lists the views, `seal sql 'DESCRIBE failures'` the columns of one"
        if "primary" in str(error):
            remedy = 'primary is a word of SQL: write "primary" in double quotes'
        raise ParamError("sql", str(error).strip(), remedy) from None


def _table(con: "duckdb.DuckDBPyConnection", sql: str, limit: int) -> pa.Table:
    """Asked in a thread: while DuckDB computes in the main one, Ctrl-C is heard late or never."""
    answer = con.sql(sql)
    return (answer.limit(limit) if limit else answer).to_arrow_table()


def rows(
    con: "duckdb.DuckDBPyConnection", sql: str, values: Sequence[object] | Mapping[str, object] = ()
) -> list[dict[str, Any]]:
    """Rows of a question of our own; `values` fill its `?` or, by name, its `$name`. ArtifactError: a broken table."""
    with _damaged_files_named(con):
        found = con.execute(sql, values)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def table_without_file(con: "duckdb.DuckDBPyConnection", sql: str) -> str:
    """A table that an answered question reads and that has no file, "" where each has one. `con` is of no use then:
    what such tables stand on is taken away, so that the question names it."""
    import duckdb

    absent = con.execute("SELECT name FROM stored.without_files").fetchall()
    for (name,) in absent:
        con.execute(f"DROP TABLE IF EXISTS stored.no_{name}")
    try:
        if absent:
            con.sql(sql)  # is not computed
    except duckdb.CatalogException as error:
        return found[1] if (found := _NOT_THERE.search(str(error))) else ""
    return ""


def not_played_error(name: str, known: Iterable[str]) -> RoundError:
    """The error about a round (or a phase) that has no rollouts, where those of `known` rounds are there."""
    rounds = ", ".join(dict.fromkeys(known))
    return RoundError("played round", name or "none here", f"rounds with rollouts: {rounds}" if rounds else PLAY)


@contextmanager
def _damaged_files_named(con: "duckdb.DuckDBPyConnection") -> Iterator[None]:
    """Raise ArtifactError, naming the file, in the place of DuckDB's error about a damaged one."""
    import duckdb

    try:
        yield
    except duckdb.CatalogException as error:
        names = [found[1]] if (found := _NOT_THERE.search(str(error))) else []
        for thing, value in con.execute("SELECT thing, value FROM stored.damaged WHERE name IN ?", [names]).fetchall():
            raise ArtifactError(thing, value, MEND) from None
        raise
    except duckdb.Error as error:  # a page that is no page is of the plain kind
        kinds = (duckdb.IOException, duckdb.InvalidInputException, duckdb.SerializationException)
        if type(error) is duckdb.Error or isinstance(error, kinds):
            _raise_unreadable(con)
        raise


def _raise_unreadable(con: "duckdb.DuckDBPyConnection") -> None:
    """Raise ArtifactError for the first file that DuckDB cannot read to its end: its errors often name none."""
    import duckdb

    for (path,) in con.execute("SELECT path FROM stored.files").fetchall():
        try:
            con.execute(f"SELECT max(hash(t)) FROM read_parquet({quoted(path)}) t").fetchall()
        except duckdb.Error as error:
            raise ArtifactError(f"table {Path(path).stem}", f"{path}: {first_line(error)}", MEND) from None


def missing_tables(data: Path) -> Iterator[Path]:
    """A stage's folder without one of its tables would answer questions as if the round had not been.

    What has a table that no start has is a round. Judged rollouts need the folder of those that were judged.
    """
    for folder in sorted(data.glob("rounds/*/")):
        files = {stage: {x: folder / stage / f"{x}.parquet" for x in names} for stage, names in OF_ROUND.items()}
        there = {stage: {x for x, path in of_stage.items() if path.exists()} for stage, of_stage in files.items()}
        is_round = any(names.difference(OF_START.get(stage, ())) for stage, names in there.items())
        played = any(there[stage] - {"profile"} for stage in _OF_COLLECTED)
        for stage, names in (OF_ROUND if is_round else OF_START).items():
            judged = played and stage in _OF_COLLECTED and (stage == "collect" or (folder / stage).is_dir())
            played_nothing = stage == "train" and there[stage].isdisjoint(OF_TRAINING)
            for name in names if there[stage] or judged else ():
                if name not in there[stage] and not (played_nothing and name in OF_TRAINING):
                    yield files[stage][name]


def _columns_of(path: Path, name: str) -> list[str]:
    """Which of a table's columns a file has. Those of an older version may lack some that are no key.

    Raises ArtifactError for a file that is no Parquet, or not of this table.
    """
    import pyarrow.parquet as pq

    kind = TABLES[name].schema
    try:
        found = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise ArtifactError(f"table {name}", f"{path}: {first_line(error)}", MEND) from None
    if missing := sorted(set(TABLES[name].key) - set(found.names)):
        raise ArtifactError(f"table {name}", f"{path}: has no column {', '.join(missing)}", MEND)
    for field in found:
        if field.name in kind.names and field.type != kind.field(field.name).type:
            other = f"column {field.name} is {field.type}, not {kind.field(field.name).type}"
            raise ArtifactError(f"table {name}", f"{path}: {other}", MEND)
    return [column for column in found.names if column in kind.names]


def table_files(data: Path, name: str) -> list[Path]:
    """Every file of a table below the data folder, sorted; not those of a stage that is still writing."""
    if name == "tasks":
        return sorted((data / "tasks").glob("*.parquet"))
    return [path for path in sorted(data.glob(f"rounds/*/*/{name}.parquet")) if not path.parent.suffix]


def quoted(text: str) -> str:
    """An SQL string."""
    return "'" + text.replace("'", "''") + "'"


def first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def _reads(statement) -> bool:
    import duckdb

    kind = duckdb.StatementType
    if statement.type == kind.EXPLAIN:
        return "ANALYZE" not in statement.query.upper()  # it would run what it explains
    return statement.type in (kind.SELECT, kind.MULTI)  # MULTI: a PIVOT


def _add_rounds(con: "duckdb.DuckDBPyConnection", lineage: Sequence[tuple[str, str, int]]) -> None:
    con.execute("CREATE TABLE rounds (round VARCHAR, parent VARCHAR, depth INTEGER, line VARCHAR[])")
    lines: dict[str, list[str]] = {}
    for name, parent, depth in lineage:
        lines[name] = [*lines.get(parent, []), name]
        con.execute("INSERT INTO rounds VALUES (?, ?, ?, ?)", [name, parent or None, depth, lines[name]])


def _add_stored(con: "duckdb.DuckDBPyConnection", name: str, files: Sequence[Path]) -> None:
    """The files of a table as one. A column that some lack is null in those, and everywhere if all do."""
    columns = [_columns_of(path, name) for path in files]
    there = {column for of_file in columns for column in of_file}
    if there == set(TABLES[name].names):
        alike = all(len(of_file) == len(there) for of_file in columns)
        con.execute(f"CREATE VIEW stored.{name} AS SELECT {_listed(TABLES[name].names)} FROM {_scan(files, alike)}")
        return
    con.register("nothing", TABLES[name].schema.empty_table())
    con.execute(f"CREATE TABLE stored.no_{name} AS SELECT * FROM nothing")
    con.unregister("nothing")
    rows = f" UNION ALL BY NAME SELECT {_listed(sorted(there))} FROM {_scan(files, False)}" if files else ""
    con.execute(f"CREATE VIEW stored.{name} AS SELECT * FROM stored.no_{name}{rows}")


def _scan(files: Sequence[Path], alike: bool) -> str:
    return f"read_parquet([{', '.join(quoted(str(path)) for path in files)}], union_by_name = {not alike})"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _with_lineage(name: str, lineage: Sequence[tuple[str, str, int]]) -> str:
    """Parent and depth are looked up, not joined: a question that does not need them does not pay for them."""
    if "round" not in TABLES[name].names:
        return f"SELECT * FROM stored.{name}"
    keys = ", ".join(quoted(round_id) for round_id, _, _ in lineage)
    parents = ", ".join(quoted(parent) if parent else "NULL" for _, parent, _ in lineage)
    depths = ", ".join(str(depth) for _, _, depth in lineage)
    looked_up = ", ".join(
        f"MAP([{keys}]::VARCHAR[], [{values}]::{kind}[])[round] AS {column}"
        for column, values, kind in (("parent", parents, "VARCHAR"), ("depth", depths, "INTEGER"))
    )
    return f"SELECT round, {looked_up}, * EXCLUDE (round) FROM stored.{name}"
