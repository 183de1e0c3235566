"""The contracts of a finished round, checked with Great Expectations, all tables in one process.

Cheap checks of single tables run in every write and read (seal.store.checks); these cost seconds (importing Great
Expectations alone takes three to seven) and run once a round.
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from seal.core.errors import ArtifactError, ContractError
from seal.core.types import Json
from seal.store.checks import vocabulary
from seal.store.expectations import AT_LEAST_ONE_ROW, GROUPS, MAY_LACK, RANGES, claims_of
from seal.store.files import read_json
from seal.store.schemas import TABLES
from seal.store.tables import read_table

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

Row = dict[str, Json]
SAMPLE = 5  # failing rows that an error shows


@dataclass(frozen=True, slots=True)
class Expectation:
    """One Great Expectations expectation: its class, its arguments, what it says, and the columns it is about."""

    kind: str
    arguments: Mapping[str, Any]
    says: str
    columns: tuple[str, ...]


def validate_round(folder: Path, parent: Path | None = None, tasks: Path | None = None) -> list[Row]:
    """Check every table of a round, alone and against each other. Rows of the `validation` table, sorted.

    Args: `folder`: data/rounds/<id>; `parent`: the same of its parent, whose policy must have collected; `tasks`: the
    task table of its environment. Groups (see GROUPS) that are not there yet are left out.
    Raises ContractError for the first expectation that fails, ArtifactError for a table that is missing or broken.
    """
    con, there = _load(folder, parent, tasks)
    rows, failed, validate = [], [], _Validator()
    for group, name in ((group, name) for group, names in there.items() for name in names):
        dataset = f"{GROUPS[group][name]}/{name}"
        expectations = list(expectations_of(name, group, _known(con, group)))
        frame = _frame(con, group, name, expectations)
        for expectation, result in zip(expectations, validate(dataset, name, frame, expectations), strict=True):
            row = _row(folder.name, dataset, expectation, len(frame), result)
            rows.append(row)
            if not row["success"]:
                failed.append((row, result))
    if failed:
        raise _error(*failed[0], [row for row, _ in failed])
    return sorted(rows, key=lambda row: tuple(row[name] for name in TABLES["validation"].key))


def expectations_of(name: str, group: str, known: frozenset[str]) -> Iterator[Expectation]:
    """Everything expected of a table of a group. `known`: names that claims may refer to."""
    table = TABLES[name]
    yield Expectation("ExpectTableRowCountToBeBetween", {"min_value": int(name in AT_LEAST_ONE_ROW)}, "enough rows", ())
    yield Expectation("ExpectCompoundColumnsToBeUnique", {"column_list": list(table.key)}, "unique", table.key)
    for column, words in sorted(vocabulary(name).items()):
        arguments = {"column": column, "value_set": list(words)}
        yield Expectation("ExpectColumnValuesToBeInSet", arguments, "known words", (column,))
    for column, (low, high) in RANGES.get(name, {}).items():
        arguments = {"column": column, "min_value": low, "max_value": high}
        says = f"at least {low:g}" if high is None else f"from {low:g} to {high:g}"
        yield Expectation("ExpectColumnValuesToBeBetween", arguments, says, (column,))
    for claim in claims_of(name):
        if claim.group in ("", group) and known >= set(claim.needs):
            arguments = {"column": claim.says, "value_set": [True]}
            yield Expectation("ExpectColumnValuesToBeInSet", arguments, claim.says, ())


class _Validator:
    """Great Expectations, quiet: no progress bars, no analytics, nothing on disk."""

    def __init__(self):
        os.environ["GX_ANALYTICS_ENABLED"] = "false"
        import great_expectations as gx

        context = gx.get_context(mode="ephemeral")
        context.variables.progress_bars = {"globally": False, "metric_calculations": False}
        self._gx, self._source = gx, context.data_sources.add_pandas("tables")

    def __call__(
        self, dataset: str, name: str, frame: "pd.DataFrame", expectations: Sequence[Expectation]
    ) -> list[dict[str, Any]]:
        """Results in the order of the expectations."""
        suite = self._gx.ExpectationSuite(name=dataset)
        for number, e in enumerate(expectations):
            suite.add_expectation(getattr(self._gx.expectations, e.kind)(**e.arguments, meta={"number": number}))
        asset = self._source.add_dataframe_asset(dataset)
        batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": frame})
        detail = {"result_format": "COMPLETE", "unexpected_index_column_names": list(TABLES[name].key)}
        found = batch.validate(suite, result_format=detail).to_json_dict()
        by_number = {result["expectation_config"]["meta"]["number"]: result for result in found["results"]}
        return [by_number[number] for number in range(len(expectations))]


def _load(
    folder: Path, parent: Path | None, tasks: Path | None
) -> tuple["duckdb.DuckDBPyConnection", dict[str, list[str]]]:
    """The tables of each group in a schema of its name, and which are there."""
    import duckdb

    con = duckdb.connect()
    there: dict[str, list[str]] = {}
    for group, places in GROUPS.items():
        if not (folder / places["trajectories"] / "trajectories.parquet").exists():
            continue
        con.execute(f"CREATE SCHEMA {group}")
        for name, stage in places.items():
            path = folder / stage / f"{name}.parquet"
            if path.exists() or name not in MAY_LACK:
                con.register("loaded", read_table(path, name))
                con.execute(f"CREATE TABLE {group}.{name} AS SELECT * FROM loaded")
                con.unregister("loaded")
                there.setdefault(group, []).append(name)
    if not there:
        raise ArtifactError("round", folder, "it has no played tables: run its collect stage")
    if tasks:
        con.register("loaded", read_table(tasks, "tasks"))
        con.execute("CREATE TABLE tasks AS SELECT task_id FROM loaded")
    if parent:
        con.execute("CREATE TABLE parent_policy AS SELECT ? AS hash", [_policy_hash(parent)])
    return con, there


def _policy_hash(parent: Path) -> str:
    path = parent / "metrics.json"
    try:
        return read_json(path)["policy_hash"]
    except (KeyError, TypeError):
        remedy = "run the parent's evaluate stage again"
        raise ArtifactError("metrics", f"{path}: without policy_hash", remedy) from None


def _known(con: "duckdb.DuckDBPyConnection", group: str) -> frozenset[str]:
    """Names that claims on a group's tables can refer to."""
    rows = con.execute("SELECT table_schema, table_name FROM information_schema.tables").fetchall()
    own = {name for schema, name in rows if schema in (group, "main")}
    return frozenset(own | {f"{schema}.{name}" for schema, name in rows})


def _frame(
    con: "duckdb.DuckDBPyConnection", group: str, name: str, expectations: Sequence[Expectation]
) -> "pd.DataFrame":
    """The table without its nested columns, with a column of truth per claim."""
    claims = {claim.says: claim.sql for claim in claims_of(name)}
    checked = [e.arguments["column"] for e in expectations if e.arguments.get("column") in claims]
    columns = [_column(*column) for column in TABLES[name].columns if not pa.types.is_nested(column[1])]
    columns += [f'coalesce(({claims[says]}), false) AS "{says}"' for says in checked]
    con.execute(f"SET search_path = '{group},main'")
    return con.execute(f"SELECT {', '.join(columns)} FROM {group}.{name} t ORDER BY ALL").df()


def _column(name: str, kind: pa.DataType) -> str:
    """A column as SQL. pandas takes NaN for a missing value, which is in every range: it becomes -inf, in none."""
    value = f't."{name}"'
    if pa.types.is_floating(kind):
        value = f"CASE WHEN isnan({value}) THEN '-inf'::FLOAT ELSE {value} END"
    return f'{value} AS "{name}"'


def _row(round_id: str, dataset: str, expectation: Expectation, n: int, result: Mapping[str, Any]) -> Row:
    failing = result["result"].get("unexpected_count") or int(not result["success"])
    about = {"dataset": dataset, "expectation": expectation.says, "columns": ", ".join(expectation.columns)}
    return {"round": round_id, **about, "rows": n, "failing": failing, "success": bool(result["success"])}


def _error(row: Row, result: Mapping[str, Any], failed: Sequence[Row]) -> ContractError:
    where = f"table {row['dataset']} of {row['round']}"
    what = f"{row['expectation']} ({row['columns']})" if row["columns"] else row["expectation"]
    if reason := (result.get("exception_info") or {}).get("exception_message"):
        value = f'"{what}" cannot be checked: {reason}'
    else:
        value = f'"{what}" fails for {row["failing"]} of {row["rows"]} rows'
        for found in (result["result"].get("unexpected_index_list") or [])[:SAMPLE]:
            shown = {key: "nan" if item == -math.inf else item for key, item in found.items()}  # see _column
            value += "\n    " + ", ".join(f"{key}={item}" for key, item in shown.items() if key != row["expectation"])
    others = "".join(f'\n  also {other["dataset"]}: "{other["expectation"]}"' for other in failed[1 : SAMPLE + 1])
    others += f"\n  and {len(failed) - SAMPLE - 1} more" if len(failed) > SAMPLE + 1 else ""
    stage = row["dataset"].partition("/")[0].replace("interface", "evolve_interface")
    remedy = f"the stage {stage}@{row['round']} wrote what cannot be, or the file was edited: run it again"
    return ContractError(where, value + others, remedy)
