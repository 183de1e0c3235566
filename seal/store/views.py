"""DuckDB over the tables of all rounds: in memory, nothing is written, made anew for each question.

The schema `stored` has the tables as they lie on disk. The views that people ask carry parent and depth of their round;
they are typed and empty where no table is. See docs/tables.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from seal.core.errors import ArtifactError, ParamError
from seal.core.params import load_params
from seal.store.derived import DERIVED
from seal.store.lineage import Lineage as Tree
from seal.store.schemas import TABLES

if TYPE_CHECKING:
    import duckdb

Lineage = Iterable[tuple[str, str, int]]  # (round, its parent or "", depth), parents before children
_MEND = "`dvc checkout`, or run its stage again"
_JUDGED = ("steps", "outcomes", "verdicts", "diagnoses")
_OF_COLLECTED = {"verify": ("outcomes", "verdicts"), "diagnose": ("diagnoses", "profile")}  # folder beside collect


def open_root(root: Path) -> "duckdb.DuckDBPyConnection":
    """`connect` to a workspace, with the lineage of its params.yaml if it has one. ArtifactError without data."""
    if not (root / "data").is_dir():
        raise ArtifactError("tables", root / "data", "run `seal run` first, or name the workspace with --root")
    lineage: list[tuple[str, str, int]] = []
    if (root / "params.yaml").is_file():
        tree = Tree(load_params(root / "params.yaml"))
        lineage = [(name, tree.parent(name), depth) for name, depth in tree.walk()]
    return connect(root, lineage)


def connect(root: Path, lineage: Lineage = ()) -> "duckdb.DuckDBPyConnection":
    """A connection with all views over root/data; closed to other files, to the network and to settings.

    Raises ArtifactError when a table cannot be opened.
    """
    import duckdb

    con = duckdb.connect(config={"temp_directory": ""})
    data, lineage = (root / "data").absolute(), list(lineage)
    _check_whole(data)
    con.execute("CREATE SCHEMA stored")
    _add_rounds(con, lineage)
    for name in TABLES:
        try:
            _add_stored(con, name, table_files(data, name))
        except duckdb.Error as error:
            raise ArtifactError(f"table {name}", first_line(error), _MEND) from None
        view = f"stored.plain_{name}" if name in DERIVED else name
        con.execute(f"CREATE VIEW {view} AS {_with_lineage(name, lineage)}")
    for name, sql in DERIVED.items():
        con.execute(f"CREATE VIEW {name} AS {sql}")
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
            raise ParamError("sql", f"a {statements[0].type.name} statement", remedy)
        answer = con.sql(sql)
        return (answer.limit(limit) if limit else answer).to_arrow_table()
    except RuntimeError as error:  # DuckDB's own word for Ctrl-C
        if "interrupted" in str(error).lower():
            raise KeyboardInterrupt from None
        raise
    except (duckdb.IOException, duckdb.InvalidInputException) as error:
        raise ArtifactError("table", first_line(error), _MEND) from None
    except duckdb.Error as error:
        remedy = "`seal sql 'SHOW TABLES'` lists the views, `seal sql 'DESCRIBE failures'` the columns of one"
        if "primary" in str(error):
            remedy = 'primary is a word of SQL: write "primary" in double quotes'
        raise ParamError("sql", str(error).strip(), remedy) from None


def rows(
    con: "duckdb.DuckDBPyConnection", sql: str, values: Sequence[object] | Mapping[str, object] = ()
) -> list[dict[str, Any]]:
    """Rows of a question of our own; `values` fill its `?` or, by name, its `$name`. ArtifactError: a broken table."""
    import duckdb

    try:
        found = con.execute(sql, values)
    except (duckdb.IOException, duckdb.InvalidInputException) as error:
        raise ArtifactError("table", first_line(error), _MEND) from None
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def _check_whole(data: Path) -> None:
    """A folder of judged rollouts without one of its tables would answer questions as if the rollouts had not been."""
    for played in data.glob("rounds/*/*/trajectories.parquet"):
        folder = played.parent
        needed = [folder / name for name in (("steps",) if folder.name == "collect" else _JUDGED)]
        if folder.name == "collect":
            made = [(stage, names) for stage, names in _OF_COLLECTED.items() if (folder.parent / stage).is_dir()]
            needed += [folder.parent / stage / name for stage, names in made for name in names]
        for path in needed if not folder.suffix else ():
            if not (file := path.with_suffix(".parquet")).exists():
                raise ArtifactError("missing table", file, _MEND)


def _columns_of(path: Path, name: str) -> list[str]:
    """Which of a table's columns a file has. Those of an older version may lack some that are no key.

    Raises ArtifactError for a file that is no Parquet, or not of this table.
    """
    import pyarrow.parquet as pq

    kind = TABLES[name].schema
    try:
        found = pq.read_schema(path)
    except (pa.ArrowException, OSError) as error:
        raise ArtifactError(f"table {name}", f"{path}: {first_line(error)}", _MEND) from None
    if missing := sorted(set(TABLES[name].key) - set(found.names)):
        raise ArtifactError(f"table {name}", f"{path}: has no column {', '.join(missing)}", _MEND)
    for field in found:
        if field.name in kind.names and field.type != kind.field(field.name).type:
            other = f"column {field.name} is {field.type}, not {kind.field(field.name).type}"
            raise ArtifactError(f"table {name}", f"{path}: {other}", _MEND)
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
